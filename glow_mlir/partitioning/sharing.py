"""Splitting of operators among several devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DeviceSpec, devices_of
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.partitioning.operators import pinned
from glow_mlir.partitioning.placement_file import read_placement
from glow_mlir.partitioning.support import Support

Split = Callable[[Operation, Sequence[DeviceSpec], Storage], None]
"""Splits an operator among devices, if possible."""


def share(module: ModuleOp, assignments: str, is_wanted: Callable[[Operation], bool], split: Split) -> None:
    """
    Split the wanted operators among the devices of a module that execute them, if there are several.

    Operators assigned to a device, also by the file `assignments`, stay whole.
    """
    devices, storage = devices_of(module), Storage(module)
    if len(devices) < 2:
        return
    support, placement = Support(storage), read_placement(assignments, devices)
    for function in high_functions(module):
        for op in own_operations(function):
            if (
                not is_wanted(op)
                or pinned(op) is not None
                or not placement.keys().isdisjoint(location_names(op.location))
            ):
                continue
            able = [device for device in devices if not support.refusal(op, device)]
            if len(able) > 1:
                split(op, able, storage)

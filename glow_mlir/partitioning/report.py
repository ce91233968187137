"""Report of a multi-device module: operators per device, refusals, and transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import devices_of
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatrixProduct
from glow_mlir.dialects.glow_high.recurrent import Recurrent
from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp
from glow_mlir.dialects.glow_low.host import CallOp, TransferOp
from glow_mlir.dialects.shapes import bytes_of
from glow_mlir.ir.locations import described
from glow_mlir.ir.rewriting import high_functions, low_functions
from glow_mlir.ir.traversal import own_operations, subtree
from glow_mlir.partitioning.operators import Nodes, pinned
from glow_mlir.partitioning.support import Support
from glow_mlir.support.dataclass import dataclass

PRODUCTS = (AttentionOp, ConvOp, ConvTransposeOp, FullyConnectedOp, MatrixProduct, Recurrent)
"""Operators whose arithmetic is multiply-adds."""


@dataclass
class DeviceShare:
    """The share of one device: operators, multiply-adds, bytes of constants, partitions, and transfers."""

    device: str
    operators: int = 0
    multiply_adds: int = 0
    constants: dict[str, int] = field(default_factory=dict[str, int])
    partitions: int = 0
    transfers: int = 0
    transferred: int = 0
    """Bytes transferred to or from the device per inference."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Operator that the device does not execute → why."""

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants that the device reads."""
        return sum(self.constants.values())


def shares_of(module: ModuleOp) -> list[DeviceShare]:
    """The share of each device of a module with placed operators, as far as known before partitioning."""
    devices, storage = devices_of(module), Storage(module)
    found = {device.name: DeviceShare(device.name) for device in devices}
    support = Support(storage)
    for function in high_functions(module):
        nodes = Nodes(function, storage)
        for op in nodes.ops:
            if isinstance(op, GetOp | SaveOp) or (where := pinned(op)) is None:
                continue
            share = found[where]
            share.operators += 1
            share.multiply_adds += multiply_adds(op)
            share.constants.update(nodes.constants(op))
            for device in devices:
                if reason := support.refusal(op, device):
                    name = f"{op.name.partition('.')[2]} '{described(op)}'"
                    found[device.name].refused[name] = reason
    return list(found.values())


@dataclass(frozen=True)
class PlannedStep:
    """An entry of a queue: a partition, or the bytes of a transfer."""

    queue: str
    partition: str
    nbytes: int = 0


def planned_steps(module: ModuleOp) -> list[PlannedStep]:
    """The queue entries of a module's host programs, in order."""
    found: list[PlannedStep] = []
    for function in low_functions(module):
        for op in own_operations(function):
            if isinstance(op, CallOp):
                found.append(PlannedStep(op.queue_name, op.callee_name))
            elif isinstance(op, TransferOp):
                found.append(PlannedStep(op.queue_name, "", bytes_of(op.source)))
    return found


def add_host_programs(shares: Sequence[DeviceShare], plan: Sequence[PlannedStep]) -> None:
    """Add the queue entries of host programs to the shares."""
    found = {share.device: share for share in shares}
    for step in plan:
        share = found[step.queue]
        if step.partition:
            share.partitions += 1
        else:
            share.transfers += 1
            share.transferred += step.nbytes


def multiply_adds(op: Operation) -> int:
    """The multiply-adds of an operator, nested regions counted once."""
    return sum(item.arithmetic().operations for item in subtree(op) if isinstance(item, PRODUCTS))

"""`verify-partitioned`: verify that partitions belong to one device each, and callers run them in order."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DeviceSpec, devices_of
from glow_mlir.dialects.glow_high.call import CallOp, read_by, written_by
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.glow_low.host import CallOp as LowCallOp
from glow_mlir.dialects.glow_low.memory import FuncOp as HostProgram
from glow_mlir.ir.checks import require_at
from glow_mlir.ir.entries import entries_of, packing_functions, placeholders_of
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class VerifyPartitionedPass(ModulePass):
    """
    Verify that entry functions only call others, that each callee belongs to a device of the module and is called once,
    that one callee writes each storage between partitions and others read it, and that state is on one device.
    """

    name = "verify-partitioned"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        entries, devices = entries_of(op), {device.name: device for device in devices_of(op)}
        calls: dict[str, int] = {}
        for entry in entries:
            for item in own_operations(entry):
                is_of_host = isinstance(item, GetOp | CallOp | SaveOp) or isinstance(entry, HostProgram)
                require_at(item, is_of_host, f"{item.name} is in no partition")
                if isinstance(item, CallOp | LowCallOp):
                    calls[item.callee_name] = calls.get(item.callee_name, 0) + 1
        parts = [item for item in functions(op) if item not in entries]
        packing = packing_functions(op)
        for part in parts:
            _verify_device(part, devices)
            name = part.sym_name.data
            require_at(part, name in packing or calls.get(name) == 1, f"@{name} is called more than once")
        _verify_between(op, parts)
        _verify_state(parts)


def _verify_device(part: FunctionOp, devices: Mapping[str, DeviceSpec]) -> None:
    name = part.sym_name.data
    device = None if part.device is None else devices.get(part.device.data)
    require_at(part, device is not None, f"@{name} is for no device of the module")
    if device is not None:
        require_at(part, part.target == device.target, f"@{name} has another target than its device {device.name}")


def _verify_between(module: ModuleOp, parts: list[FunctionOp]) -> None:
    writers: dict[str, list[str]] = {}
    readers: dict[str, list[str]] = {}
    for part in parts:
        for name in written_by(part):
            writers.setdefault(name, []).append(part.sym_name.data)
        for name in read_by(part):
            readers.setdefault(name, []).append(part.sym_name.data)
    for name, op in Storage(module).by_name.items():
        if isinstance(op, PlaceholderOp) and op.role == "between":
            require_at(op, len(writers.get(name, ())) == 1, f"@{name} is not written by exactly one function")
            require_at(op, name in readers, f"@{name} is read by no function")


def _verify_state(parts: list[FunctionOp]) -> None:
    homes: dict[str, str] = {}
    for part in parts:
        assert part.device is not None
        for op in placeholders_of(part):
            if op.role == "state":
                home = homes.setdefault(op.sym_name.data, part.device.data)
                reason = f"state @{op.sym_name.data} is on {home} and on {part.device.data}"
                require_at(op, home == part.device.data, reason)

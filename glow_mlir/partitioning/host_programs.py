"""Conversion of functions of host instructions to host programs of the runtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.glow_high.call import written_by
from glow_mlir.dialects.glow_low.host import CallOp, QueuedOp, RecordEventOp, TransferOp, WaitEventOp
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, WeightOp
from glow_mlir.dialects.shapes import bytes_of
from glow_mlir.ir.entries import bindings_of, entries_of, placeholders_of
from glow_mlir.ir.traversal import own_operations
from glow_mlir.runtime.host_programs import (
    Allocate,
    Call,
    Free,
    HostProgram,
    RecordEvent,
    Step,
    Transfer,
    WaitEvent,
)
from glow_mlir.support.dataclass import dataclass


def host_programs(module: ModuleOp) -> tuple[HostProgram, ...]:
    """The host programs of a module: those of all functions without callers."""
    return tuple(_Program(module, entry).made() for entry in entries_of(module) if isinstance(entry, FuncOp))


@dataclass
class _Program:
    """One host program during conversion, with its buffer numbers."""

    module: ModuleOp
    function: FuncOp
    buffers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def made(self) -> HostProgram:
        """The program. Its first buffers are its bindings."""
        function, names = self.function, self.function.binding_names
        self.buffers = {
            op.result: names.index(op.storage_name) for op in own_operations(function) if isinstance(op, WeightOp)
        }
        allocations = [op for op in own_operations(function) if isinstance(op, AllocOp)]
        self.buffers |= {op.result: number for number, op in enumerate(allocations, len(names))}
        return HostProgram(function.sym_name.data, bindings_of(function), tuple(self._steps()))

    def _steps(self) -> Iterator[Step]:
        for op in own_operations(self.function):
            if isinstance(op, AllocOp):
                device = "" if op.device is None else op.device.data
                yield Allocate(self.buffers[op.result], device, bytes_of(op.result))
            elif isinstance(op, DeallocOp):
                yield Free(self.buffers[op.buffer])
            elif isinstance(op, QueuedOp):
                yield self._queued(op)

    def _queued(self, op: Operation) -> Step:
        if isinstance(op, CallOp):
            return Call(op.queue_name, op.callee_name, tuple(self.buffers[value] for value in self._passed(op)))
        if isinstance(op, TransferOp):
            return Transfer(op.queue_name, self.buffers[op.target], self.buffers[op.source], bytes_of(op.source))
        if isinstance(op, RecordEventOp):
            return RecordEvent(op.queue_name, op.number)
        assert isinstance(op, WaitEventOp)
        return WaitEvent(op.queue_name, op.number)

    def _passed(self, op: CallOp) -> Iterator[SSAValue]:
        """The buffers of a call in the order of the bindings of its partition."""
        callee = op.function(self.module)
        assert callee is not None
        written, targets, sources = set(written_by(callee)), iter(op.targets), iter(op.sources)
        for placeholder in placeholders_of(callee):
            if placeholder.role != "state":
                yield next(targets if placeholder.sym_name.data in written else sources)

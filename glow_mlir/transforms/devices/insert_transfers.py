"""`insert-transfers`: let what a device reads and writes be in memory that it can use."""

from __future__ import annotations

from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_low.host import CallOp, TransferOp
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, buffer_type
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.partitioning.device_memories import HOST_MEMORY, Places
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class InsertTransfersPass(ModulePass):
    """
    Give calls of host programs buffers in memory that their devices can use, and transfer what they read and write.

    A value goes to each memory once. Devices whose memory is the host's share buffers; from one that has memory of its
    own to another, a value goes by way of the host. What comes from the host is sent before anything runs, what a
    device computed right behind that; what it then is sent to waits no longer for it than it has to.
    """

    name = "insert-transfers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        places = Places(op)
        for function in low_functions(op):
            calls = [item for item in own_operations(function) if isinstance(item, CallOp)]
            if calls:
                _Transfers(function, places).insert(calls)


@dataclass
class _Transfers:
    """The transfers of one host program."""

    function: FuncOp
    places: Places
    copies: dict[tuple[SSAValue, str], SSAValue] = field(default_factory=dict[tuple[SSAValue, str], SSAValue])
    """Buffer and memory → its copy there."""
    writers: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])
    """Buffer → what writes it, where that is not the caller."""

    def insert(self, calls: list[CallOp]) -> None:
        """Insert the transfers around all calls."""
        for call in calls:
            device = call.queue_name
            sources = [self._source(value, device, call) for value in call.sources]
            targets = [self._target(value, device, call) for value in call.targets]
            call.set_operands({"targets": targets, "sources": sources})
            self.writers.update(dict.fromkeys(targets, call))

    def _source(self, value: SSAValue, device: str, call: CallOp) -> SSAValue:
        """What a device reads in the place of a buffer."""
        place = self.places.of(value)
        if self.places.is_usable(place, device):
            return value
        if not self.places.is_host(place):
            value = self._copy(value, HOST_MEMORY, place, call)
        return value if self.places.is_host(device) else self._copy(value, device, device, call)

    def _copy(self, value: SSAValue, place: str, queue: str, call: CallOp) -> SSAValue:
        """The copy of a buffer in a memory, which a queue makes."""
        known = self.copies.get((value, place))
        if known is not None:
            return known
        copy = self._allocate(value, place)
        transfer = TransferOp.between(copy, value, queue, call.location)
        writer = self.writers.get(value)
        if writer is None:  # Callers give it.
            first = next(op for op in own_operations(self.function) if isinstance(op, CallOp))
            self.function.block.insert_op_before(transfer, first)
        elif place == HOST_MEMORY:
            self.function.block.insert_op_after(transfer, writer)
        else:
            self.function.block.insert_op_before(transfer, call)
        self.writers[copy] = transfer
        self.copies[value, place] = copy
        return copy

    def _target(self, value: SSAValue, device: str, call: CallOp) -> SSAValue:
        """What a device writes in the place of a buffer."""
        if self.places.is_usable(self.places.of(value), device):
            return value
        made = self._allocate(value, device)
        transfer = TransferOp.between(value, made, device, call.location)
        self.function.block.insert_op_after(transfer, call)
        self.writers[value] = transfer
        self.copies[value, device] = made
        return made

    def _allocate(self, value: SSAValue, place: str) -> SSAValue:
        """A buffer like another one, in a memory, as long as the function."""
        block = self.function.block
        type_ = buffer_type(sizes_of(value), element_of(value))
        assert isinstance(value.owner, Operation)
        made = AllocOp.of(type_, value.owner.location, "" if place == HOST_MEMORY else place)
        made.result.name_hint = value.name_hint
        first = next(op for op in own_operations(self.function) if isinstance(op, CallOp | TransferOp))
        block.insert_op_before(made, first)
        block.add_op(DeallocOp.of(made.result, location=made.location))
        statistics.count("transfers inserted")
        return made.result

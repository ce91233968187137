"""`insert-transfers`: copy buffers to memory that the device of each call can access."""

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
from glow_mlir.partitioning.device_memories import HOST_MEMORY, BufferMemories
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class InsertTransfersPass(ModulePass):
    """
    Give calls of host programs buffers in memory that their devices can access, and transfer inputs and results.

    A value is transferred to each memory once. Devices that use host memory share buffers; between two devices with
    memory of their own, values go through the host. Transfers from the host come first, transfers to the host right
    after the call that computes the value; transfers on to other devices come as late as possible.
    """

    name = "insert-transfers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        memories = BufferMemories(op)
        for function in low_functions(op):
            calls = [item for item in own_operations(function) if isinstance(item, CallOp)]
            if calls:
                _Transfers(function, memories).insert(calls)


@dataclass
class _Transfers:
    """The transfers of one host program."""

    function: FuncOp
    memories: BufferMemories
    copies: dict[tuple[SSAValue, str], SSAValue] = field(default_factory=dict[tuple[SSAValue, str], SSAValue])
    """Buffer and memory → its copy there."""
    writers: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])
    """Buffer → the operation that writes it; absent if the caller does."""

    def insert(self, calls: list[CallOp]) -> None:
        """Insert the transfers around all calls."""
        for call in calls:
            device = call.queue_name
            sources = [self._source(value, device, call) for value in call.sources]
            targets = [self._target(value, device, call) for value in call.targets]
            call.set_operands({"targets": targets, "sources": sources})
            self.writers.update(dict.fromkeys(targets, call))

    def _source(self, value: SSAValue, device: str, call: CallOp) -> SSAValue:
        """The buffer that a device reads in place of `value`."""
        held_in = self.memories.of(value)
        if self.memories.is_usable(held_in, device):
            return value
        if not self.memories.is_host(held_in):
            value = self._copy(value, HOST_MEMORY, held_in, call)
        return value if self.memories.is_host(device) else self._copy(value, device, device, call)

    def _copy(self, value: SSAValue, held_in: str, queue: str, call: CallOp) -> SSAValue:
        """The copy of a buffer in the memory `held_in`, transferred by `queue`."""
        known = self.copies.get((value, held_in))
        if known is not None:
            return known
        copy = self._allocate(value, held_in)
        transfer = TransferOp.between(copy, value, queue, call.location)
        writer = self.writers.get(value)
        if writer is None:  # The caller provides it.
            first = next(op for op in own_operations(self.function) if isinstance(op, CallOp))
            self.function.block.insert_op_before(transfer, first)
        elif held_in == HOST_MEMORY:
            self.function.block.insert_op_after(transfer, writer)
        else:
            self.function.block.insert_op_before(transfer, call)
        self.writers[copy] = transfer
        self.copies[value, held_in] = copy
        return copy

    def _target(self, value: SSAValue, device: str, call: CallOp) -> SSAValue:
        """The buffer that a device writes in place of `value`."""
        if self.memories.is_usable(self.memories.of(value), device):
            return value
        made = self._allocate(value, device)
        transfer = TransferOp.between(value, made, device, call.location)
        self.function.block.insert_op_after(transfer, call)
        self.writers[value] = transfer
        self.copies[value, device] = made
        return made

    def _allocate(self, value: SSAValue, held_in: str) -> SSAValue:
        """Allocate a buffer like `value` in the memory `held_in`, live throughout the function."""
        block = self.function.block
        type_ = buffer_type(sizes_of(value), element_of(value))
        assert isinstance(value.owner, Operation)
        made = AllocOp.of(type_, value.owner.location, "" if held_in == HOST_MEMORY else held_in)
        made.result.name_hint = value.name_hint
        first = next(op for op in own_operations(self.function) if isinstance(op, CallOp | TransferOp))
        block.insert_op_before(made, first)
        block.add_op(DeallocOp.of(made.result, location=made.location))
        statistics.count("transfers inserted")
        return made.result

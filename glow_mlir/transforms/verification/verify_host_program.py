"""`verify-host-program`: verify that queues use accessible memory and wait for their dependences."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_low.host import CallOp, EventOp, QueuedOp, RecordEventOp, TransferOp
from glow_mlir.dialects.glow_low.memory import FuncOp
from glow_mlir.ir.checks import require_at
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.partitioning.clocks import Clocks
from glow_mlir.partitioning.device_memories import BufferMemories
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.devices.insert_events import Work, earlier, note


@dataclass(frozen=True)
class VerifyHostProgramPass(ModulePass):
    """
    Verify that calls use buffers which their devices can access, that transfers start or end at their own device, that
    events are recorded once and before a queue waits for them, and that each queue waits for all entries of others that
    it depends on.
    """

    name = "verify-host-program"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        memories = BufferMemories(op)
        for function in low_functions(op):
            _verify_memories(function, memories)
            _verify_order(function)


def _verify_memories(function: FuncOp, memories: BufferMemories) -> None:
    for op in own_operations(function):
        if isinstance(op, CallOp):
            for value in op.operands:
                held_in = memories.of(value)
                usable = memories.is_usable(held_in, op.queue_name)
                require_at(op, usable, f"{op.queue_name} cannot use a buffer in the memory of {held_in or 'the host'}")
        elif isinstance(op, TransferOp):
            ends = [memories.of(value) for value in op.operands]
            own = [end for end in ends if memories.is_usable(end, op.queue_name)]
            require_at(op, bool(own), f"the queue of {op.queue_name} is at neither end of the transfer")
            others = [end for end in ends if end not in own]
            require_at(op, all(map(memories.is_host, others)), "a transfer goes from a device to the host, or back")


def _verify_order(function: FuncOp) -> None:
    clocks = Clocks()
    written: dict[SSAValue, Work] = {}
    read: dict[SSAValue, list[Work]] = {}
    events: dict[int, tuple[str, int]] = {}
    count: dict[str, int] = {}
    for op in own_operations(function):
        if isinstance(op, EventOp):
            queue = op.queue_name
            if isinstance(op, RecordEventOp):
                require_at(op, op.number not in events, f"event {op.number} is recorded twice")
                events[op.number] = queue, count.get(queue, 0)
                continue
            require_at(op, op.number in events, f"event {op.number} is recorded behind who waits for it")
            other, number = events[op.number]
            if number:
                clocks.wait(queue, other, number)
        elif isinstance(op, QueuedOp):
            queue = op.queue_name
            for other, number, source in earlier(op, written, read):
                known = clocks.is_known(queue, other, number)
                require_at(op, known, f"the queue of {queue} does not wait for what {other} does in {source.name}")
            count[queue] = clocks.put(queue)
            note((queue, count[queue], op), written, read)

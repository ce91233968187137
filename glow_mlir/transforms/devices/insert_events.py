"""`insert-events`: let queues of devices wait for each other, where one needs what another one has done."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_low.host import EventOp, QueuedOp, RecordEventOp, WaitEventOp
from glow_mlir.dialects.glow_low.memory import FuncOp, root_of
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import own_operations
from glow_mlir.partitioning.clocks import Clocks
from glow_mlir.support.dataclass import dataclass

Work = tuple[str, int, QueuedOp]
"""A queue, the number of something in it, and what that is."""


@dataclass(frozen=True)
class InsertEventsPass(ModulePass):
    """
    Record an event behind what a queue does, and let another one wait for it, where that reads what the first wrote, or
    writes what it read or wrote.

    A queue does not wait for what it is known to be behind, by an earlier wait or by a chain of them.
    """

    name = "insert-events"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            queued = [item for item in own_operations(function) if isinstance(item, QueuedOp)]
            if queued and not any(isinstance(item, EventOp) for item in queued):
                _insert(function, queued)


def _insert(function: FuncOp, queued: list[QueuedOp]) -> None:
    clocks, block = Clocks(), function.block
    positions = {op: position for position, op in enumerate(queued)}
    written: dict[SSAValue, Work] = {}
    read: dict[SSAValue, list[Work]] = {}
    events: dict[tuple[str, int], int] = {}
    for op in queued:
        queue = op.queue_name
        # The last one first: its queue may have waited for the others.
        needed = sorted(earlier(op, written, read), key=lambda work: -positions[work[2]])
        for other, number, source in needed:
            if clocks.is_known(queue, other, number):
                continue
            event = events.get((other, number))
            if event is None:
                event = events[other, number] = len(events)
                block.insert_op_after(RecordEventOp.numbered(event, other, source.location), source)
            block.insert_op_before(WaitEventOp.numbered(event, queue, op.location), op)
            clocks.wait(queue, other, number)
            statistics.count("waits inserted")
        note((queue, clocks.put(queue), op), written, read)


def earlier(op: QueuedOp, written: dict[SSAValue, Work], read: dict[SSAValue, list[Work]]) -> list[Work]:
    """What has to be done before an instruction, of what was put into other queues."""
    found: list[Work] = []
    for qualifier, value in op.uses():
        root = root_of(value)
        found += [written[root]] if root in written else []
        if qualifier.writes:
            found += read.get(root, [])
    return [work for work in found if work[0] != op.queue_name]


def note(work: Work, written: dict[SSAValue, Work], read: dict[SSAValue, list[Work]]) -> None:
    """Keep what an instruction that was put into a queue reads and writes."""
    for qualifier, value in work[2].uses():
        root = root_of(value)
        if qualifier.writes:
            written[root] = work
            read.pop(root, None)
        else:
            read.setdefault(root, []).append(work)

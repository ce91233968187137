"""`insert-events`: synchronize device queues with events where one depends on another."""

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
"""A queue, the sequence number of an entry, and the entry."""


@dataclass(frozen=True)
class InsertEventsPass(ModulePass):
    """
    Record an event after an entry of a queue, and let another queue wait for it before an entry that reads its result,
    or overwrites a buffer that it accesses.

    A queue does not wait for entries that an earlier wait, or a chain of waits, has already ordered before it.
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
        # Latest first: its queue may have waited for the others.
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
    """The entries of other queues that must complete before an instruction."""
    found: list[Work] = []
    for qualifier, value in op.uses():
        root = root_of(value)
        found += [written[root]] if root in written else []
        if qualifier.writes:
            found += read.get(root, [])
    return [work for work in found if work[0] != op.queue_name]


def note(work: Work, written: dict[SSAValue, Work], read: dict[SSAValue, list[Work]]) -> None:
    """Record the buffers that a queued instruction reads and writes."""
    for qualifier, value in work[2].uses():
        root = root_of(value)
        if qualifier.writes:
            written[root] = work
            read.pop(root, None)
        else:
            read.setdefault(root, []).append(work)

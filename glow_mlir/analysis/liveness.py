"""Liveness of buffers: when each allocation lives, and how much memory that needs at least."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import Operation

from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, byte_size
from glow_mlir.ir.traversal import Span, spans


@dataclass(frozen=True)
class Lifetime:
    """The life of one allocation: positions of its `alloc` and `dealloc`, and its size in bytes."""

    allocation: AllocOp
    begin: int
    end: int
    size: int

    def overlaps(self, other: Lifetime) -> bool:
        """Whether both are live at some position."""
        return self.begin < other.end and other.begin < self.end


def lifetimes(function: FuncOp) -> list[Lifetime]:
    """
    The lives of all allocations of a function, in order; one without `dealloc` lives to the end of its block.

    Positions count the operations in the order of the program, through all regions. What lives around a loop lives in
    all its trips; what is allocated inside lives for a part of each, and two branches have their memory in turns.
    """
    found = spans(function)
    ends = {op.buffer.owner: span.begin for op, span in found.items() if isinstance(op, DeallocOp)}
    return [
        Lifetime(op, span.begin, ends.get(op, _end_of_block(op, found)), byte_size(op.result))
        for op, span in found.items()
        if isinstance(op, AllocOp)
    ]


def _end_of_block(op: Operation, found: Mapping[Operation, Span]) -> int:
    """The position behind the block that an operation is in."""
    block = op.parent
    assert block is not None
    assert block.last_op is not None
    return found[block.last_op].end


def live_bytes(function: FuncOp, ops: Iterable[Operation], alignment: int = 1) -> dict[Operation, int]:
    """Operation → the bytes of all allocations that are live where it runs, each rounded up to `alignment`."""
    found = spans(function)
    totals = _totals(lifetimes(function), alignment)
    positions = list(totals)
    return {op: totals[positions[at - 1]] if (at := bisect_right(positions, found[op].begin)) else 0 for op in ops}


def peak(lives: list[Lifetime], alignment: int = 1) -> int:
    """The largest sum of sizes that are live at once, each rounded up to `alignment`: no arena can be smaller."""
    return max(_totals(lives, alignment).values(), default=0)


def _totals(lives: Iterable[Lifetime], alignment: int) -> dict[int, int]:
    """Position where something begins or ends to live → the bytes that are live from there on, in order."""
    changes: Counter[int] = Counter()
    for life in lives:
        size = -(-life.size // alignment) * alignment
        changes[life.begin] += size
        changes[life.end] -= size
    positions = sorted(changes)
    return dict(zip(positions, accumulate(changes[position] for position in positions), strict=True))

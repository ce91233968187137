"""Liveness of buffers: when each allocation lives, and how much memory that needs at least."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block

from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, byte_size


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


def lifetimes(block: Block) -> list[Lifetime]:
    """The lives of all allocations of a block, in order; one without `dealloc` lives to the end."""
    begins: dict[AllocOp, int] = {}
    ends: dict[AllocOp, int] = {}
    position = 0
    for position, op in enumerate(block.ops):
        if isinstance(op, AllocOp):
            begins[op] = position
        elif isinstance(op, DeallocOp) and isinstance(op.buffer.owner, AllocOp):
            ends[op.buffer.owner] = position
    return [Lifetime(op, begin, ends.get(op, position + 1), byte_size(op.result)) for op, begin in begins.items()]


def peak(lives: list[Lifetime], alignment: int = 1) -> int:
    """The largest sum of sizes that are live at once, each rounded up to `alignment`: no arena can be smaller."""
    events: list[tuple[int, int]] = []
    for life in lives:
        size = -(-life.size // alignment) * alignment
        events += [(life.begin, size), (life.end, -size)]
    total = highest = 0
    for _, change in sorted(events):
        total += change
        highest = max(highest, total)
    return highest

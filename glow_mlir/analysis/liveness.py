"""Liveness of buffers: lifetimes of allocations, and the lower bound of memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

from xdsl.ir import Operation

from glow_mlir.analysis.accesses import each_user
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, WeightOp, byte_size
from glow_mlir.ir.traversal import Span, own_operations, spans, within
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Lifetime:
    """The lifetime of one allocation: positions of its `alloc` and `dealloc`, and its size in bytes."""

    allocation: AllocOp
    begin: int
    end: int
    size: int

    def overlaps(self, other: Lifetime) -> bool:
        """Whether both are live at some position."""
        return self.begin < other.end and other.begin < self.end


def lifetimes(function: FuncOp) -> list[Lifetime]:
    """
    The lifetimes of all allocations of a function, in order; without `dealloc`, to the end of the block.

    Positions count operations in program order, through all regions. An allocation outside a loop is live in all trips,
    one inside for a part of each; the two regions of a branch use memory in turns.
    """
    found = spans(function)
    ends = {op.buffer.owner: span.begin for op, span in found.items() if isinstance(op, DeallocOp)}
    return [
        Lifetime(op, span.begin, ends.get(op, _end_of_block(op, found)), byte_size(op.result))
        for op, span in found.items()
        if isinstance(op, AllocOp)
    ]


@dataclass(frozen=True)
class BindingLifetime:
    """The lifetime of the content of an input or output; `binding` is its position."""

    binding: int
    weight: WeightOp | None
    begin: int
    end: int
    size: int


Life = Lifetime | BindingLifetime
"""The lifetime of an allocation, or of an input or output."""


def declaration_of(life: Life, function: FuncOp) -> Operation:
    """The declaration of the buffer with this lifetime; the function itself for an unused binding."""
    return life.allocation if isinstance(life, Lifetime) else life.weight or function


def binding_lifetimes(function: FuncOp, exchanged: Mapping[int, int]) -> list[BindingLifetime]:
    """
    The lifetimes of inputs and outputs: an input is live up to its last reader, an output from its first writer.
    `exchanged` has their bytes by binding position.

    A use in a branch or loop extends over all of it.
    """
    found = spans(function)
    weights = {op.storage_name: op for op in own_operations(function) if isinstance(op, WeightOp)}
    end = _end_of_block(next(iter(weights.values())), found) if weights else 1
    lives: list[BindingLifetime] = []
    for position, size in exchanged.items():
        weight = weights.get(function.binding_names[position])
        users = [] if weight is None else [within(function.block, op) for op in each_user(weight.result)]
        used = [found[op] for op in users if op is not None]
        is_input = weight is None or weight.mutable is None
        first = 0 if is_input else min((span.begin for span in used), default=end - 1)
        last = max((span.end for span in used), default=1) if is_input else end
        lives.append(BindingLifetime(position, weight, first, last, size))
    return lives


def _end_of_block(op: Operation, found: Mapping[Operation, Span]) -> int:
    """The position after the block of an operation."""
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


def peak(lives: Iterable[Life], alignment: int = 1) -> int:
    """The largest sum of sizes that are live at once, each rounded up to `alignment`: no arena can be smaller."""
    return max(_totals(lives, alignment).values(), default=0)


def _totals(lives: Iterable[Life], alignment: int) -> dict[int, int]:
    """Position where something begins or ends to live → the bytes that are live from there on, in order."""
    changes: Counter[int] = Counter()
    for life in lives:
        size = -(-life.size // alignment) * alignment
        changes[life.begin] += size
        changes[life.end] -= size
    positions = sorted(changes)
    return dict(zip(positions, accumulate(changes[position] for position in positions), strict=True))

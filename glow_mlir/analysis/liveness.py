"""Liveness of buffers: when each allocation lives, and how much memory that needs at least."""

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


@dataclass(frozen=True)
class BindingLifetime:
    """When the content of an input or output is needed, as that of an allocation; `binding` is its position."""

    binding: int
    weight: WeightOp | None
    begin: int
    end: int
    size: int


Life = Lifetime | BindingLifetime
"""When memory is needed: that of an allocation, or of an input or output."""


def declaration_of(life: Life, function: FuncOp) -> Operation:
    """Where a function declares the buffer with that life; the function itself for a binding that it does not use."""
    return life.allocation if isinstance(life, Lifetime) else life.weight or function


def binding_lifetimes(function: FuncOp, exchanged: Mapping[int, int]) -> list[BindingLifetime]:
    """
    When inputs and outputs are needed: an input until the last instruction that reads it has run, an output from the
    first one that writes it. `exchanged` has their bytes by their positions among the bindings.

    What a branch or loop uses is needed as long as that runs.
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

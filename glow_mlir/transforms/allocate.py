"""`allocate`: give every buffer its region and offset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.passes import ModulePass

from glow_mlir.analysis.liveness import Lifetime, lifetimes, peak, pressures
from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.dialects.glow_low.memory import FuncOp, WeightOp, byte_size
from glow_mlir.storage import Storage
from glow_mlir.transforms.rewriting import low_functions

ALIGNMENT = 64

MANY_LIVES = 2000
"""Allocations above which the first order whose result is `GOOD_ENOUGH` is taken."""

GOOD_ENOUGH = 1.05
"""Extent of a good placement, relative to the bound."""


@dataclass(frozen=True)
class AllocatePass(ModulePass):
    """
    Place allocations in one activations region so that those that live at once do not overlap, constants one after the
    other in the constants region, and bind the rest by position (Glow's MemoryAllocator).

    Several orders of placement are tried, the smallest result is kept. All offsets are multiples of 64 bytes. The
    function keeps the sizes as `activations`, `activations_bound` (no arena can be smaller) and `constants`.
    """

    name = "allocate"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in low_functions(op):
            allocate_activations(function)
            allocate_storage(function, storage)


def rounded(size: int) -> int:
    """`size` rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


ORDERS: dict[str, Callable[[Lifetime, int], tuple[int, ...]]] = {
    "pressure": lambda life, pressure: (-pressure, life.begin),
    "size": lambda life, _: (-life.size, life.begin),
    "duration": lambda life, _: (life.begin - life.end, -life.size),
    "area": lambda life, _: (-life.size * (life.end - life.begin), life.begin),
    "begin": lambda life, _: (life.begin, -life.size),
    "end": lambda life, _: (-life.end, -life.size),
}
"""
Orders in which allocations are placed; the first placed get the lowest offsets.

The second argument is the pressure of an allocation: the most bytes that are live at once during its life.
"""


def _rank(
    order: Callable[[Lifetime, int], tuple[int, ...]], pressure: Mapping[Lifetime, int], life: Lifetime
) -> tuple[int, ...]:
    return order(life, pressure[life])


def place(lives: list[Lifetime]) -> dict[Lifetime, int]:
    """Offsets for all allocations, none overlapping another that lives at once: the best of all orders."""
    best: dict[Lifetime, int] = {}
    bound = peak(lives, ALIGNMENT)
    extent = -1
    pressure = pressures(lives, ALIGNMENT)
    for order in ORDERS.values():
        offsets = place_in_order(sorted(lives, key=partial(_rank, order, pressure)))
        size = max((offset + rounded(life.size) for life, offset in offsets.items()), default=0)
        if extent < 0 or size < extent:
            best, extent = offsets, size
        if extent == bound or (len(lives) > MANY_LIVES and extent <= GOOD_ENOUGH * bound):
            break
    return best


def place_in_order(ordered: list[Lifetime]) -> dict[Lifetime, int]:
    """Place one allocation after the other at the lowest offset that is free all its life (first fit)."""
    begins = np.array([life.begin for life in ordered], dtype=np.int64)
    ends = np.array([life.end for life in ordered], dtype=np.int64)
    lows = np.zeros(len(ordered), dtype=np.int64)
    highs = np.zeros(len(ordered), dtype=np.int64)
    for index, life in enumerate(ordered):
        (neighbours,) = np.nonzero((begins[:index] < life.end) & (ends[:index] > life.begin))
        low, high = lows[neighbours], highs[neighbours]
        order = np.lexsort((high, low))
        free = np.concatenate(([0], np.maximum.accumulate(high[order])))  # Where the gap in front of each begins.
        (gaps,) = np.nonzero(free[:-1] + rounded(life.size) <= low[order])
        lows[index] = free[gaps[0]] if gaps.size else free[-1]
        highs[index] = lows[index] + rounded(life.size)
    return dict(zip(ordered, lows.tolist(), strict=True))


def allocate_activations(function: FuncOp) -> None:
    """Set the offsets of the allocations of one function."""
    lives = lifetimes(function.block)
    offsets = place(lives)
    for life, offset in offsets.items():
        life.allocation.offset = IntegerAttr(offset, i64)
    size = max((offset + rounded(life.size) for life, offset in offsets.items()), default=0)
    function.attributes["activations"] = IntegerAttr(size, i64)
    function.attributes["activations_bound"] = IntegerAttr(peak(lives, ALIGNMENT), i64)


def allocate_storage(function: FuncOp, storage: Storage) -> None:
    """Set region and offset of the weights of one function."""
    position = 0
    bindings = {name: index for index, name in enumerate(function.binding_names)}
    for op in function.block.ops:
        if not isinstance(op, WeightOp):
            continue
        if isinstance(storage.by_name[op.storage_name], ConstantOp):
            op.region, op.offset = StringAttr("constants"), IntegerAttr(position, i64)
            position += rounded(byte_size(op.result))
        else:
            op.region, op.offset = StringAttr("bindings"), IntegerAttr(bindings[op.storage_name], i64)
    function.attributes["constants"] = IntegerAttr(position, i64)

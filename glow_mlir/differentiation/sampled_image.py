"""Sampling between image elements: the contributing elements, their weights, and their cotangents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    AndOp,
    ClipOp,
    GreaterOrEqualOp,
    LessOp,
    MaxOp,
    MinOp,
    MulOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, FloorOp
from glow_mlir.dialects.glow_high.indexing import GatherOp, ScatterNDOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.differentiation.contributions import converted_like
from glow_mlir.differentiation.differentiator import Differentiator
from glow_mlir.ir.emitter import Emitter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import product_of

BEYOND = 8
"""The limit for positions outside, in elements; positions further outside have the same result."""


@dataclass(frozen=True)
class AxisTap:
    """
    For each of many positions, one element along an axis: its index, in range, and its weight, 0 if it is outside.
    """

    index: SSAValue
    weight: SSAValue


AxisTaps = Callable[[SSAValue, int, Emitter], Sequence[AxisTap]]
"""The contributing elements along an axis of a size, for positions computed from the operator's numbers."""


def element_before(position: SSAValue, size: int, emit: Emitter) -> SSAValue:
    """The element before each position as i64; it may be outside."""
    limits = (emit.splat(-BEYOND, position), emit.splat(size + BEYOND, position))
    return emit(CastOp, emit(ClipOp, emit(FloorOp, position), *limits), to=i64)


def clipped(index: SSAValue, size: int, emit: Emitter) -> SSAValue:
    """An index clamped to the border."""
    return emit(MinOp, emit(MaxOp, index, emit.splat(0, index)), emit.splat(size - 1, index))


def moved(index: SSAValue, distance: int, emit: Emitter) -> SSAValue:
    """An index moved by a distance."""
    return emit(AddOp, index, emit.splat(distance, index)) if distance else index


def within(index: SSAValue, weight: SSAValue, size: int, emit: Emitter) -> AxisTap:
    """The tap, with weight 0 if its index is outside."""
    is_inside = emit(
        AndOp, emit(GreaterOrEqualOp, index, emit.splat(0, index)), emit(LessOp, index, emit.splat(size, index))
    )
    return AxisTap(clipped(index, size, emit), emit(WhereOp, is_inside, weight, emit.splat(0, weight)))


@dataclass(frozen=True)
class SampledImage:
    """
    An image [N, spatial…, C] sampled at positions [N, …, 1]; `numbers` determines them along each spatial axis.

    Samples are [N, …, C].
    """

    image: SSAValue
    numbers: Sequence[SSAValue]
    taps: AxisTaps
    emit: Emitter

    @property
    def spatial(self) -> tuple[int, ...]:
        """The spatial sizes of the image."""
        return static(sizes_of(self.image)[1:-1])

    def _combinations(self) -> Iterator[tuple[AxisTap, ...]]:
        """Yield each combination of taps along the axes, emitting their operators."""
        along = zip(self.numbers, self.spatial, strict=True)
        return product(*[self.taps(numbers, size, self.emit) for numbers, size in along])

    def _rows(self, taps: Sequence[AxisTap]) -> SSAValue:
        """The row of the image, viewed as [N · spatial, C], of each position for a combination of taps: [N, …]."""
        emit, spatial = self.emit, self.spatial
        batch, *_ = static(sizes_of(self.image)[:1])
        positions = np.arange(batch, dtype=np.int64) * int(np.prod(spatial))
        rank = rank_of(taps[0].index)
        row = emit.constant(positions.reshape(-1, *(1,) * (rank - 1)), "images")
        for number, tap in enumerate(taps):
            step = int(np.prod(spatial[number + 1 :]))
            row = emit(AddOp, row, emit(MulOp, tap.index, emit.splat(step, tap.index)) if step > 1 else tap.index)
        return emit(ReshapeOp, row, shape=sizes_of(row)[:-1])

    def _weight(self, taps: Sequence[AxisTap]) -> SSAValue:
        return reduce(lambda x, y: self.emit(MulOp, x, y), [tap.weight for tap in taps])

    def by_image(self, g: SSAValue) -> SSAValue:
        """Each element gets the cotangents of the positions it contributes to, by weight."""
        emit, sizes = self.emit, sizes_of(self.image)
        rows: list[SSAValue] = []
        updates: list[SSAValue] = []
        for taps in self._combinations():
            row = self._rows(taps)
            rows.append(emit(ReshapeOp, row, shape=(product_of(sizes_of(row)), 1)))
            update = emit(MulOp, g, converted_like(self._weight(taps), g, emit))
            updates.append(emit(ReshapeOp, update, shape=(product_of(sizes_of(g)[:-1]), sizes[-1])))
        listed = [parts[0] if len(parts) == 1 else emit(ConcatOp, parts, axis=0) for parts in (rows, updates)]
        zeros = emit.splat(0, g, (product_of(sizes[:-1]), sizes[-1]))
        return emit(ReshapeOp, emit(ScatterNDOp, zeros, *listed, reduction="add"), shape=sizes)

    def by_numbers(self, g: SSAValue) -> list[SSAValue]:
        """The cotangents of `numbers`, of which weights are elementwise functions."""
        emit, sizes = self.emit, sizes_of(self.image)
        flat = emit(ReshapeOp, self.image, shape=(product_of(sizes[:-1]), sizes[-1]))
        given = [
            emit(ReduceSumOp, emit(MulOp, g, emit(GatherOp, flat, self._rows(taps), axis=0)), axes=(rank_of(g) - 1,))
            for taps in self._combinations()
        ]
        # Emit the weights again: after this operation, only weights are computed from positions.
        since = emit.anchor.prev_op
        products = [
            emit(MulOp, weight, converted_like(factor, weight, emit))
            for factor, weight in zip(given, map(self._weight, self._combinations()), strict=True)
        ]
        total = reduce(lambda x, y: emit(AddOp, x, y), products)
        one = emit.splat(1, total, sizes_of(total))
        found = Differentiator(emit.anchor, emit.storage, self.numbers).run([(total, one)], since=since)
        return [
            emit.splat(0, number, sizes_of(number)) if value is None else value
            for number, value in zip(self.numbers, found, strict=True)
        ]

    def samples(self) -> SSAValue:
        """The samples."""
        emit, sizes = self.emit, sizes_of(self.image)
        flat = emit(ReshapeOp, self.image, shape=(product_of(sizes[:-1]), sizes[-1]))
        terms: list[SSAValue] = []
        for taps in self._combinations():
            rows = emit(GatherOp, flat, self._rows(taps), axis=0)
            terms.append(emit(MulOp, rows, converted_like(self._weight(taps), rows, emit)))
        return reduce(lambda x, y: emit(AddOp, x, y), terms)

"""The softmax within attention: the scores of each query are replaced by their exponentials, in place."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import ExtraOperand
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import chunks
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.math.exponentials import exp_falling, tanh
from glow_mlir.dialects.element_types import bit_width
from glow_mlir.support.dataclass import dataclass

Step = Callable[[Value, Value, bool], Value]
"""Index, vector of scores, whether some of its lanes may be hidden → the vector to combine."""


@dataclass(frozen=True)
class ScoreLines:
    """
    The scores of queries: lines of `keys` scores, `pitch` elements apart, which is a whole number of vectors.

    `mask` is added to the scores; its axes are queries and keys. With `past`, query i only sees keys up to i + `past`.
    """

    b: Builder
    scores: Value
    element: Attribute
    lanes: int
    keys: Index
    pitch: Index
    mask: ExtraOperand | None = None
    past: Index | None = None

    def peak(self, row: Index, query: Index, limit: Index) -> Value:
        """
        Return the largest of the first `limit` scores of a row, those of `query`; NaN is ignored.

        The mask is added to the scores first, and keys that the query does not see get minus infinity.
        """
        b, line = self.b, self._line(row)

        def largest(i: Value, x: Value, partial: bool) -> Value:
            seen = self._seen(query, i, x.lanes) if partial else None
            if self.mask is not None:
                x = x + self._addend(self.mask, query, i, x.lanes, seen)
            if seen is not None:
                x = b.select(seen, x, -math.inf)
            if seen is not None or self.mask is not None:
                line.at(i, self.element).store(x)
            return x

        return self._fold(line, limit, -math.inf, largest, b.max)

    def soften(self, row: Index, peak: Value, limit: Index) -> Value:
        """Replace the first `limit` scores x of a row by exp(x - peak); return the sum."""
        b, line = self.b, self._line(row)

        def power(i: Value, x: Value, partial: bool) -> Value:
            y = exp_falling(b, x - peak)
            line.at(i, self.element).store(y)
            return y

        return self._fold(line, limit, 0.0, power, b.add)

    def _line(self, row: Index) -> Value:
        return self.scores.at(row * self.pitch, self.element)

    def _fold(
        self, line: Value, limit: Index, initial: float, step: Step, combine: Callable[[Value, Value], Value]
    ) -> Value:
        """Apply `step` to all scores of a line, and combine the results into one number."""
        b = self.b
        results: list[Value] = []

        def piece(start: Index, stop: Index, lanes: int, partial: bool) -> list[Value]:
            type_ = vector(self.element, lanes)
            with b.loop(start, stop, lanes, carried=[b.constant(initial, type_)]) as loop:
                x = line.at(loop.index, self.element).load(type_)
                loop.set(combine(step(loop.index, x, partial), loop.values[0]))
            return [b.reduce(loop.results[0], combine)]

        for start, stop, lanes, partial in self._pieces(limit):
            found = functools.partial(piece, start, stop, lanes, partial)
            # A piece whose size is only known at run time may be empty: its lanes are then not combined.
            if isinstance(self.keys, int):
                results += found()
            else:
                results += b.either(b.index(start) < stop, found, lambda: [b.constant(initial, self.element)])
        value = results[0]
        for other in results[1:]:
            value = combine(other, value)
        return value

    def _pieces(self, limit: Index) -> list[tuple[Index, Index, int, bool]]:
        """Return start, stop and lanes of the loops over a line, and whether lanes may be hidden."""
        if self.past is not None:
            return [(0, limit, self.lanes, True)]
        wide = self.lanes * kernel_costs(self.b.target).independent_vectors
        if not isinstance(self.keys, int):
            whole = self.keys // wide * wide
            return [(0, whole, wide, False), (whole, self.keys, self.lanes, True)]
        even = self.keys // self.lanes * self.lanes
        pieces: list[tuple[Index, Index, int, bool]] = [
            (start, stop, lanes, False) for start, stop, lanes in chunks(even, wide)
        ]
        return pieces if even == self.keys else [*pieces, (even, self.keys, self.lanes, True)]

    def _seen(self, query: Index, i: Value, lanes: int) -> Value:
        """Return the mask of the keys from `i` on that the query sees."""
        count: Index = self.keys
        if self.past is not None:
            count = self.b.min(self.b.index(query + (self.past + 1)), self.keys)
        return self.b.mask(count - i, lanes, bit_width(self.element))

    def _addend(self, mask: ExtraOperand, query: Index, i: Value, lanes: int, seen: Value | None) -> Value:
        """Load the mask for scores of a query from key `i` on; nothing is read for keys that do not exist."""
        step = mask.strides[-1]
        start = query * mask.strides[-2] + i * step
        return mask.read(self.b, start, step, lanes, seen if lanes > 1 and step else None)


def soften(
    b: Builder, line: Value, lanes: int, seen: tuple[Value, Value], before: Sequence[Value], softcap: float
) -> tuple[Value, Value, Value]:
    """
    Replace the scores x of f32 that are `seen`, from the first to behind the last, by exp(x - peak).

    `before` are the peak and the sum of earlier pieces of the line. Returns the peak, the sum, and the factor that
    makes earlier weights fit to the new peak. Scores are capped first, if `softcap` is not 0. Other scores of the
    vectors become 0: vectors begin at multiples of `lanes`, so that sums have one order, whatever is seen.
    """
    type_, (first, behind), (peak, total) = vector(f32, lanes), seen, before
    bounds = first // lanes * lanes, behind, lanes
    if softcap:
        with b.loop(*bounds) as i:
            x = line.at(i, f32).load(type_)
            line.at(i, f32).store(tanh(b, x * (1 / softcap)) * softcap)
    for edge in (bounds[0], (behind - 1) // lanes * lanes):
        is_seen = b.mask(behind - edge, lanes) & ~b.mask(first - edge, lanes)
        line.at(edge, f32).store(b.select(is_seen, line.at(edge, f32).load(type_), -math.inf))
    with b.loop(*bounds, carried=[b.constant(-math.inf, type_)]) as loop:
        loop.set(b.max(line.at(loop.index, f32).load(type_), loop.values[0]))
    highest = b.max(b.reduce(loop.results[0], b.max), peak)
    with b.loop(*bounds, carried=[b.constant(0.0, type_)]) as loop:
        weights = exp_falling(b, line.at(loop.index, f32).load(type_) - highest)
        line.at(loop.index, f32).store(weights)
        loop.set(weights + loop.values[0])
    factor = exp_falling(b, peak - highest)
    return highest, b.fma(total, factor, b.reduce(loop.results[0], b.add)), factor

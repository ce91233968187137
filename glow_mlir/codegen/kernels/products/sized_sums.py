"""
The accumulators of a tile whose sums have few terms, as code for fixed sizes: offsets are constants, and inputs that
neighbouring rows share are loaded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import DotProduct, Parts
from glow_mlir.codegen.kernels.products.tiles import Tile
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import numbers_in


@dataclass(frozen=True)
class SumSizes:
    """
    The terms of the sums, and the steps between rows in elements.

    The outermost dimensions are `loops`, each with its trip count and its step in the input. Then there are `taps`,
    `tap_step` elements apart, each with a run of `run` neighbours. Weights have the order loops, taps, runs. Sums add
    all taps of a neighbour before the next neighbour.
    """

    loops: tuple[tuple[int, int], ...]
    taps: int
    tap_step: int
    run: int
    input_step: int
    output_step: int

    @staticmethod
    def of(
        dot: DotProduct,
        tile: Tile,
        target: Target,
        loops: Sequence[tuple[Index, Index]],
        tap: tuple[Index, Index],
        run: Index,
        steps: tuple[Index, Index],
    ) -> SumSizes | None:
        """
        Return the sizes if code for fixed sizes suits the product; `steps` are those between rows of input and output.

        Such code is for machines that execute one instruction at a time: no partial accumulators, and no vectors.
        """
        numbers = (*(number for loop in loops for number in loop), *tap, run, *steps)
        known = numbers_in(numbers)
        if len(known) < len(numbers) or tile.lanes > 1 or tile.accumulators > 1 or dot.group > 1 or dot.start:
            return None
        *outer, taps, tap_step, length, input_step, output_step = known
        found = SumSizes(
            tuple(zip(outer[::2], outer[1::2], strict=True)), taps, tap_step, length, input_step, output_step
        )
        costs = kernel_costs(target)
        # With one tap, rows share no inputs: only the cost of a loop is saved.
        return found if found.depth <= (costs.sized_depth if taps > 1 else 3 * costs.unrolled_groups) else None

    @property
    def depth(self) -> int:
        """The number of terms of a sum."""
        return math.prod(trips for trips, _ in self.loops) * self.taps * self.run


@dataclass(frozen=True)
class SizedSums:
    """Emits the code that adds all products of a tile to its accumulators, row by row."""

    b: Builder
    dot: DotProduct
    tile: Tile
    rows: int
    vectors: int
    sizes: SumSizes

    @property
    def _unrolled_terms(self) -> int:
        """The number of terms of a sum that are unrolled; loops repeat them."""
        return 2 * kernel_costs(self.b.target).unrolled_groups

    def added(self, source: Value, weights: Value, accumulators: Sequence[Value]) -> list[Value]:
        """Return the accumulators with all products added; `source` and `weights` are the first row and the panel."""
        return self._looped(self.sizes.loops, source, weights, accumulators)

    def _looped(
        self, loops: Sequence[tuple[int, int]], source: Value, weights: Value, accumulators: Sequence[Value]
    ) -> list[Value]:
        """Add the products of the given loops."""
        if not loops:
            return self._run(source, weights, accumulators)
        (trips, step), *inner = loops
        size = math.prod(count for count, _ in inner) * self.sizes.taps * self.sizes.run
        together = trips if trips * size <= self._unrolled_terms else 1
        with self.b.loop(0, trips, together, carried=accumulators) as loop:
            values = loop.values
            for trip in range(together):
                index = loop.index + trip if trip else loop.index
                address = weights.at(index * (size * self.tile.panel), self.dot.right_group)
                values = self._looped(inner, source.at(index * step, self.dot.memory), address, values)
            loop.set(*values)
        return loop.results

    def _run(self, source: Value, weights: Value, accumulators: Sequence[Value]) -> list[Value]:
        """Add the products of all taps of a run, several neighbours at a time."""
        run = self.sizes.run
        together = max(1, min(run, self._unrolled_terms // self.sizes.taps))
        whole = run // together * together
        with self.b.loop(0, whole, together, carried=accumulators) as loop:
            loop.set(*self._neighbours(source, weights, loop.index, loop.values, together))
        return self._neighbours(source, weights, self.b.index(whole), loop.results, run - whole)

    def _neighbours(
        self, source: Value, weights: Value, first: Value, accumulators: Sequence[Value], count: int
    ) -> list[Value]:
        """Add the products of all taps of `count` neighbours."""
        sizes, dot, found = self.sizes, self.dot, list(accumulators)
        source, weights = source.at(first, dot.memory), weights.at(first * self.tile.panel, dot.right_group)
        read: dict[int, Parts] = {}

        def left(offset: int) -> Parts:
            if offset not in read:
                read[offset] = dot.spread(self.b, dot.read(self.b, source.at(offset, dot.memory)), 1)
            return read[offset]

        for neighbour in range(count):
            for tap in range(sizes.taps):
                row = (tap * sizes.run + neighbour) * self.tile.panel
                for v in range(self.vectors):
                    column = dot.columns(self.b, weights.at(row + v, dot.right_group), 1)
                    for number in range(self.rows):
                        x = left(number * sizes.input_step + tap * sizes.tap_step + neighbour)
                        index = number * self.vectors + v
                        found[index] = dot.multiply_add(self.b, x, column, found[index])
        return found

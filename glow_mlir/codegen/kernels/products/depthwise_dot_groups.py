"""
Depthwise convolutions of bytes by instructions that add dot groups: a group has the elements of a few input lines.

A vector of channels is loaded from each of these lines and interleaved once; every output of the tile whose filter
covers some of the lines adds the group, multiplied by the filter's elements for these lines, and by 0 for the others.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from functools import cached_property

from xdsl.dialects.builtin import i8

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import DotProduct, adds_bytes
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

Taps = tuple[int | None, ...]
"""For each line of a group, which line of the filter is multiplied by it for one row of the tile, if any."""

SIGN = -128
"""The byte whose only bit is that of the sign."""


def depthwise_dot(dot: DotProduct, target: Target, elements: int) -> DotProduct:
    """How a target computes depthwise products of filters of `elements` elements: by dot groups, or one at a time."""
    costs, lanes = kernel_costs(target), dot.lanes(target)
    is_unrolled = 1 < elements <= costs.depthwise_elements
    return dot if is_unrolled and lanes >= costs.depthwise_dot_lanes and adds_bytes(dot, lanes) else dot.singly


@dataclass(frozen=True)
class LineGroups:
    """The input lines that `rows` rows of a tile read, in groups of `size`; `height` is that of the filter."""

    rows: int
    height: int
    stride: int
    dilation: int
    size: int

    @cached_property
    def groups(self) -> Sequence[Sequence[int]]:
        """The lines of each group, counted from the first one of the tile."""
        reads = {row * self.stride + y * self.dilation for row in range(self.rows) for y in range(self.height)}
        lines = sorted(reads)
        return [lines[first : first + self.size] for first in range(0, len(lines), self.size)]

    def taps(self, row: int, group: Sequence[int]) -> Taps:
        """The lines of the filter that a row of the tile multiplies the lines of a group by."""
        found = (divmod(line - row * self.stride, self.dilation) for line in group)
        taps = [y if not rest and 0 <= y < self.height else None for y, rest in found]
        return (*taps, *(None,) * (self.size - len(taps)))


Read = Callable[[int, int], Value]
"""Loads a vector of channels: of an input line at a position, or of a line of the filter at a column."""


@dataclass(frozen=True)
class DotGroupSums:
    """
    One slice of a filter of `width` columns, and the inputs that a tile of `pixels` pixels a row reads for it.

    `source` and `filter_` load the channels of a line and a column.
    """

    b: Builder
    dot: DotProduct
    lines: LineGroups
    pixels: int
    width: int
    stride: int
    dilation: int
    source: Read
    filter_: Read
    interleaved: dict[tuple[Taps, int], Value]
    """The groups of the filter that have been loaded, by their lines and their column."""

    def add(self, accumulators: Sequence[list[Value]]) -> None:
        """Add the products to the accumulators of each row and pixel."""
        takers: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(self.pixels):
            for x in range(self.width):
                takers.setdefault(pixel * self.stride + x * self.dilation, []).append((pixel, x))
        for position, pairs in sorted(takers.items()):
            for group in self.lines.groups:
                value = self._left([self.source(line, position) for line in group])
                for row, sums in enumerate(accumulators):
                    taps = self.lines.taps(row, group)
                    for pixel, x in pairs if any(tap is not None for tap in taps) else ():
                        right = self._right(taps, x)
                        sums[pixel] = self.dot.multiply_add(self.b, (value,), (right,), sums[pixel])

    def start(self) -> Value | None:
        """What accumulators have to begin with in place of 0: it makes up for flipped signs of the left elements."""
        if not self.dot.start:
            return None
        b, groups = self.b, [(self.lines.taps(0, group), x) for group in self.lines.groups for x in range(self.width)]
        rights = [self._right(taps, x) for taps, x in groups if any(tap is not None for tap in taps)]
        flipped = b.constant(SIGN, rights[0].type)
        zero = b.constant(0, vector(self.dot.accumulators, rights[0].lanes // self.dot.group))
        total = functools.reduce(
            lambda total, right: self.dot.multiply_add(b, (flipped,), (right,), total), rights, zero
        )
        return operator.sub(zero, total)

    def _left(self, parts: Sequence[Value]) -> Value:
        group = self._interleaved(parts)
        return self.b.xor(group, SIGN) if self.dot.start else group

    def _right(self, taps: Taps, x: int) -> Value:
        if (taps, x) not in self.interleaved:
            parts = [None if y is None else self.filter_(y, x) for y in taps]
            self.interleaved[taps, x] = self._interleaved(parts)
        return self.interleaved[taps, x]

    def _interleaved(self, parts: Sequence[Value | None]) -> Value:
        """The first elements of all parts, then the second ones, and so on; parts that there are not have zeros."""
        b = self.b
        lanes = next(part.lanes for part in parts if part is not None)
        zero = b.constant(0, vector(i8, lanes))
        known = [zero if part is None else part for part in parts]
        known += [zero] * (self.dot.group - len(known))
        while len(known) > 1:
            joined = range(2 * known[0].lanes)
            known = [b.shuffle(low, high, joined) for low, high in zip(known[::2], known[1::2], strict=True)]
        order = [part * lanes + lane for lane in range(lanes) for part in range(self.dot.group)]
        return b.shuffle(known[0], known[0], order)

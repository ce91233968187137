"""The steps of windows that lie inside an operand: along one axis, along several, or along a row of windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index
from glow_mlir.codegen.builder.value import Value
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Taps:
    """The steps along a folded dimension that lie inside an operand: from `first` up to, but excluding, `last`."""

    first: Index
    last: Index

    @staticmethod
    def within(b: Builder, origin: Index, step: int, size: Index, low: Index, high: Index) -> Taps:
        """The steps of a window at an origin that lie in the range [`low`, `high`) of an axis."""
        origin = b.index(origin)
        first = b.max(rounded_up(b, low - origin, step), 0)
        return Taps(first, b.min(rounded_up(b, high - origin, step), size))

    def count(self, b: Builder) -> Index:
        """The number of steps."""
        if self.known is not None:
            return len(self.known)
        return b.max(b.index(self.last) - self.first, 0)

    @property
    def known(self) -> range | None:
        """The steps if they are known at compile time; else `None`."""
        return range(self.first, self.last) if isinstance(self.first, int) and isinstance(self.last, int) else None


def few(taps: Iterable[Taps], limit: int) -> list[tuple[int, ...]] | None:
    """The steps along several axes, if there are at least two and at most `limit`; else `None`."""
    ranges: list[range] = []
    for own in taps:
        if (known := own.known) is None:
            return None
        ranges.append(known)
    return list(itertools.product(*ranges)) if 1 < math.prod(map(len, ranges)) <= limit else None


def whole_windows(b: Builder, size: Index, count: Index, stride: int, before: int, extent: int) -> tuple[Index, Index]:
    """
    The range of windows that lie entirely inside a row of `size` elements: the first, and the one after the last.

    There are `count` windows of `extent` elements. They are `stride` elements apart, and the first begins `before`
    elements in front of the row.
    """
    first, last = max(0, -(-before // stride)), size + (before + stride - extent)
    if isinstance(size, int) and isinstance(count, int) and isinstance(last, int):
        first = min(first, count)
        return first, max(first, min(count, last // stride))
    start = b.min(b.index(count), first) if first else 0
    return start, b.max(b.min(b.max(b.index(last), 0) // stride, count), start)


def every_second(b: Builder, lanes: int, read: Callable[[int], Value]) -> Value:
    """Load every second element; `read` loads a vector from an element on. Nothing after the last element is read."""
    low, high = read(0), read(lanes - 1)
    return b.shuffle(low, high, [lane + (lane >= lanes) for lane in range(0, 2 * lanes, 2)])


def scalar_rest(target: Target) -> int | None:
    """The `rest` of a `vector_loop`: single elements if a machine has no vectors."""
    return None if target.vector_bits else 1


def rounded_up(b: Builder, x: Value, divisor: int) -> Value:
    """`x` / `divisor` rounded up; a negative quotient may come out larger, but not above 0."""
    return x if divisor == 1 else b.sdiv(x + (divisor - 1), divisor)

"""The steps of windows that count: along one axis, several of them, or along a row of windows."""

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
    """The steps along a folded dimension that count: from `first` up to `last`, without it."""

    first: Index
    last: Index

    @staticmethod
    def within(b: Builder, origin: Index, step: int, size: Index, low: Index, high: Index) -> Taps:
        """The steps of a window at an origin that lie in an axis from `low` up to `high`."""
        origin = b.index(origin)
        first = b.max(rounded_up(b, low - origin, step), 0)
        return Taps(first, b.min(rounded_up(b, high - origin, step), size))

    def count(self, b: Builder) -> Index:
        """How many there are."""
        if self.known is not None:
            return len(self.known)
        return b.max(b.index(self.last) - self.first, 0)

    @property
    def known(self) -> range | None:
        """The steps, where machine code knows them before it runs."""
        return range(self.first, self.last) if isinstance(self.first, int) and isinstance(self.last, int) else None


def few(taps: Iterable[Taps], most: int) -> list[tuple[int, ...]] | None:
    """The steps along several axes, where there are more than one, up to `most`; `None` for others."""
    ranges: list[range] = []
    for own in taps:
        if (known := own.known) is None:
            return None
        ranges.append(known)
    return list(itertools.product(*ranges)) if 1 < math.prod(map(len, ranges)) <= most else None


def whole_windows(b: Builder, size: Index, count: Index, stride: int, before: int, extent: int) -> tuple[Index, Index]:
    """
    The first window of a row that lies in it as a whole, and the one behind the last.

    There are `count` windows, each `stride` elements further and `extent` long, the first of which begins `before`
    elements in front of the row of that `size`.
    """
    first, last = max(0, -(-before // stride)), size + (before + stride - extent)
    if isinstance(size, int) and isinstance(count, int) and isinstance(last, int):
        first = min(first, count)
        return first, max(first, min(count, last // stride))
    start = b.min(b.index(count), first) if first else 0
    return start, b.max(b.min(b.max(b.index(last), 0) // stride, count), start)


def every_second(b: Builder, lanes: int, read: Callable[[int], Value]) -> Value:
    """Every second element, where `read` gives a vector from one on: none behind the last of them is read."""
    low, high = read(0), read(lanes - 1)
    return b.shuffle(low, high, [lane + (lane >= lanes) for lane in range(0, 2 * lanes, 2)])


def scalar_rest(target: Target) -> int | None:
    """Lanes of what a vector is too long for, as `vector_loop` takes them: scalars, where a machine has no vectors."""
    return None if target.vector_bits else 1


def rounded_up(b: Builder, x: Value, divisor: int) -> Value:
    """`x` / `divisor` rounded up; a negative quotient may come out larger, but not above 0."""
    return x if divisor == 1 else b.sdiv(x + (divisor - 1), divisor)

"""Regions of memory: the elements of an allocation that a buffer covers, and overlap tests."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_low.loop import moves_of
from glow_mlir.dialects.glow_low.memory import extent_of, offset_of, root_of, strides_of
from glow_mlir.dialects.shapes import Shape, largest_shape, type_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import kept_by_identity


@dataclass(frozen=True)
class Region:
    """A box of elements: the offset of the first, and size and stride of each axis longer than 1."""

    offset: int
    end: int
    """One past the last element."""
    axes: tuple[tuple[int, int], ...]
    """Size and stride, the largest stride first; sizes are above 1, strides above 0."""

    @property
    def is_empty(self) -> bool:
        """Whether the region is empty."""
        return self.end <= self.offset

    @cached_property
    def is_dense(self) -> bool:
        """Whether the region is known to contain all elements from its first to its last."""
        reach = 1
        for size, stride in reversed(self.axes):
            if stride != reach:
                return False
            reach *= size
        return reach == self.end - self.offset


def region_of(value: SSAValue | Attribute) -> Region:
    """
    The elements of a buffer, relative to its allocation; for a window, those of all trips.

    Symbols take their maximum: slices of one allocation agree on the sizes that symbols determine, so that other values
    give the same answers.
    """
    moves = moves_of(value) if isinstance(value, SSAValue) else []
    return _region(value, moves) if moves else _still(type_of(value))


@kept_by_identity
def _still(type_: Attribute) -> Region:
    """The region of a buffer that does not move; depends only on its type."""
    return _region(type_, ())


def _region(value: SSAValue | Attribute, moves: Sequence[tuple[int, int]]) -> Region:
    start, shape = offset_of(value), largest_shape(value)
    if 0 in shape:
        return Region(start, start, ())
    start -= sum((trips - 1) * -step for trips, step in moves if step < 0)
    axes = [*zip(shape, strides_of(value), strict=True), *((trips, abs(step)) for trips, step in moves)]
    taken = sorted(((size, step) for size, step in axes if size > 1 and step), key=lambda axis: -axis[1])
    end = extent_of(value) + sum((trips - 1) * step for trips, step in moves if step > 0)
    return Region(start, end, tuple(taken))


def may_overlap(one: SSAValue, other: SSAValue) -> bool:
    """Whether two buffers may overlap: they share an allocation, and are not proven disjoint."""
    return root_of(one) is root_of(other) and regions_overlap(region_of(one), region_of(other))


def regions_overlap(one: Region, other: Region) -> bool:
    """
    Whether two regions of one allocation overlap; true as well if the test would take too long.

    They overlap if the distance between their offsets is a sum of steps along axes of one region minus steps of the
    other. Axes are processed from the largest stride down. The reach of the smaller ones bounds the number of steps to
    try: one or two, unless rows overlap each other.
    """
    if one.is_empty or other.is_empty or one.end <= other.offset or other.end <= one.offset:
        return False
    if one is other or (one.is_dense and other.is_dense):
        return True
    steps: dict[int, tuple[int, int]] = {}
    for region, forwards in ((one, True), (other, False)):
        for size, stride in region.axes:
            least, most = steps.get(stride, (0, 0))
            steps[stride] = (least, most + size - 1) if forwards else (least - size + 1, most)
    lowest = sum(stride * least for stride, (least, _) in steps.items())
    highest = sum(stride * most for stride, (_, most) in steps.items())
    distances = {other.offset - one.offset}
    for stride, (least, most) in sorted(steps.items(), reverse=True):
        lowest, highest = lowest - stride * least, highest - stride * most
        bounds = ((d, max(least, -((highest - d) // stride)), min(most, (d - lowest) // stride)) for d in distances)
        followed = (d - stride * count for d, first, last in bounds for count in range(first, last + 1))
        found = set[int]()
        for distance in followed:
            found.add(distance)
            if len(found) > MAX_DISTANCES:  # Independent of the axis length.
                return True
        distances = found
    return 0 in distances


MAX_DISTANCES = 64
"""Maximum number of distances that `regions_overlap` tries before it gives up."""


def region_covers(whole: Region, part: Region) -> bool:
    """Whether `whole`, a region of the same allocation, certainly contains `part`."""
    if part.is_empty:
        return True
    if part.offset < whole.offset or whole.end < part.end:
        return False
    if whole.is_dense:
        return True
    grids = _on_one_grid(whole, part)
    if grids is None:
        return False
    return all(low <= start and end <= high for (low, high), (start, end) in zip(*grids, strict=True))


Digits = list[tuple[int, int]]
"""For each digit of a mixed-radix number, the range of its values: first, and one past the last."""


def _on_one_grid(one: Region, other: Region) -> tuple[Digits, Digits] | None:
    """
    Both regions as ranges along the axes of a common grid; `None` if there is no such grid.

    The strides of both regions, and 1, are the place values of a mixed-radix number. If no digit of a region carries
    into the next, each element has a unique representation, and the regions are boxes of such numbers.
    """
    values = sorted({1, *(stride for _, stride in (*one.axes, *other.axes))}, reverse=True)
    digits = _digits(one, values), _digits(other, values)
    return None if digits[0] is None or digits[1] is None else (digits[0], digits[1])


def _digits(region: Region, values: Sequence[int]) -> Digits | None:
    index = {value: position for position, value in enumerate(values)}
    counts = [1] * len(values)
    for size, stride in region.axes:
        for count, value in _split(size, stride, values):
            counts[index[value]] += count - 1
    rest = region.offset
    digits: Digits = []
    for value, count in zip(values, counts, strict=True):
        digit, rest = divmod(rest, value)
        digits.append((digit, digit + count))
    largest = 0
    for position in range(len(values) - 1, 0, -1):
        largest += (digits[position][1] - 1) * values[position]
        if largest >= values[position - 1]:
            return None
    return digits


def _split(size: int, stride: int, values: Sequence[int]) -> list[tuple[int, int]]:
    """Split an axis at the larger place values that its steps reach evenly: contiguous rows become rows again."""
    parts: list[tuple[int, int]] = []
    position = bisect_left(values, -stride, key=lambda value: -value)
    while position > 0 and size * stride > (larger := values[position - 1]):
        factor, rest = divmod(larger, stride)
        if rest or size % factor:
            break
        parts.append((factor, stride))
        size, stride, position = size // factor, larger, position - 1
    return [*parts, (size, stride)]


@dataclass(frozen=True)
class Relocation:
    """
    The relocation of a whole allocation into a slice of another, or of itself: its mapping of addresses.

    Allocations are laid out for the maximum of symbols, and so are relocations. `axes` has the size, the stride before
    and the stride after of each axis, in descending order of stride before; the allocation is dense from offset 0 on.
    """

    axes: tuple[tuple[int, int, int], ...]
    offset: int

    @staticmethod
    def between(whole: SSAValue, target: SSAValue) -> Relocation | None:
        """
        The relocation of the elements of `whole` to those of `target`; `None` unless `whole` is its whole allocation.
        """
        root, shape = root_of(whole), largest_shape(whole)
        if math.prod(shape) != extent_of(root) or offset_of(whole) or 0 in shape:
            return None
        triples = zip(shape, strides_of(whole), strides_of(target), strict=True)
        axes = sorted((axis for axis in triples if axis[0] > 1), key=lambda axis: -axis[1])
        merged: list[tuple[int, int, int]] = []
        expected = 1
        for size, before, after in reversed(axes):
            if before != expected:
                return None
            expected *= size
            if merged:
                inner, inner_before, inner_after = merged[-1]
                if after == inner_after * inner:
                    merged[-1] = (inner * size, inner_before, inner_after)
                    continue
            merged.append((size, before, after))
        return Relocation(tuple(reversed(merged)), offset_of(target))

    def strides_and_offset(self, value: SSAValue) -> tuple[Shape, int] | None:
        """Strides and offset of a view after the relocation; `None` if strides cannot express it."""
        (rest, offset), shape = (offset_of(value), self.offset), largest_shape(value)
        reach: list[int] = []
        for _, before, after in self.axes:
            digit, rest = divmod(rest, before)
            reach.append(digit)
            offset += digit * after
        strides: list[int] = []
        for size, stride in zip(reversed(shape), reversed(strides_of(value)), strict=True):
            if size == 1 or not stride:
                # No element is a step along this axis away.
                strides.append(0 if size > 1 else strides[-1] * shape[-len(strides)] if strides else 1)
                continue
            found = next((i for i, (_, before, _) in enumerate(self.axes) if stride >= before), None)
            if found is None or stride % self.axes[found][1]:
                return None
            steps = stride // self.axes[found][1]
            reach[found] += (size - 1) * steps
            strides.append(steps * self.axes[found][2])
        inside = all(last < size for last, (size, _, _) in zip(reach, self.axes, strict=True))
        return (tuple(reversed(strides)), offset) if inside else None

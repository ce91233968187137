"""
Slices of values between known or computed bounds.

The size of a slice with computed bounds is a symbol that the program binds. Such a slice is a slice of `glow_high` if
its start is known or it ends with the axis; any other is gathered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    DivOp,
    EqualOp,
    LessOp,
    MaxOp,
    MinOp,
    OrOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, NotOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.shapes import element_of, size_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.support.symbols import Size

Bound = Size | SSAValue
"""The start, end or length of a part: a size, or a computed i64 scalar."""


MAX_POSITIONS = 1 << 28
"""The maximum length of an `iota`, which is a constant of 2 GiB."""


def cut(node: NodeBuilder, value: SSAValue, bounds: Mapping[int, tuple[Size, Size]]) -> SSAValue:
    """Slice the given axes of `value` between two positions; `value` itself if nothing is cut off."""
    shape = sizes_of(value)
    whole: list[tuple[Size, Size]] = [(0, size) for size in shape]
    wanted = [bounds.get(axis, whole[axis]) for axis in range(len(shape))]
    if wanted == whole:
        return value
    starts, ends = zip(*wanted, strict=True)
    return node.emit(SliceOp, value, starts=starts, ends=ends)


def filled(node: NodeBuilder, value: SSAValue, axis: int, size: int) -> SSAValue:
    """Pad an axis with zeros at the end to `size`, which is at least the axis's upper bound."""
    shape = sizes_of(value)
    if (missing := size - shape[axis]) == 0:
        return value
    behind = node.splat(0, element_of(value), (*shape[:axis], missing, *shape[axis + 1 :]))
    return node.emit(ConcatOp, [value, behind], axis=axis)


def part_of(node: NodeBuilder, value: SSAValue, number: int, axis: int = 0) -> SSAValue:
    """The slice of `value` at an index of an axis, without that axis."""
    shape = sizes_of(value)
    part = cut(node, value, {axis: (number, number + 1)})
    return node.emit(ReshapeOp, part, shape=(*shape[:axis], *shape[axis + 1 :]))


def iota(node: NodeBuilder, count: Size, step: int = 1, dtype: np.dtype[Any] = np.dtype(np.int64)) -> SSAValue:
    """The vector 0, 1, …, `count` − 1, times a step; raises `UnsupportedError` beyond `MAX_POSITIONS`."""
    if largest(count) > MAX_POSITIONS:
        raise node.unsupported(f"{largest(count)} positions are more than {MAX_POSITIONS}")
    numbers = node.constant((np.arange(largest(count)) * step).astype(dtype))
    return cut(node, numbers, {0: (0, count)})


# Computed positions


def scalar(node: NodeBuilder, bound: Bound) -> SSAValue:
    """A bound as a scalar i64."""
    if isinstance(bound, SSAValue):
        return bound
    if isinstance(bound, int):
        return node.constant(np.array(bound, np.int64))
    return node.emit(ReshapeOp, node.emit(ShapeOp, sizes=(bound,)), shape=())


def bounds_of(node: NodeBuilder, value: SSAValue, role: str) -> list[Bound]:
    """The elements of a list of integers: sizes if they are known, else computed scalars."""
    if (known := node.sizes_unless_computed(value, role)) is not None:
        return list(known)
    wide = value if element_of(value) == i64 else node.emit(CastOp, value, to=i64)
    flat = node.emit(ReshapeOp, wide, shape=(size_of(value),))
    return [part_of(node, flat, position) for position in range(size_of(value))]


def bound_number(node: NodeBuilder, count: SSAValue, most: int, result: int = 0) -> Size:
    """The scalar `count`, from 0 to `most`, as a size; nodes of a kind share the size of equal counts."""
    numbered = node.once(count, lambda: iota(node, node.bind_symbol(count, most, result=result)))
    return sizes_of(numbered)[0]


def computed_part(node: NodeBuilder, value: SSAValue, axis: int, start: Bound, end: Bound, step: int) -> SSAValue:
    """
    Every `step`-th element of an axis from `start` up to, but not including, `end`, which may be computed.

    Negative bounds count from the end, and bounds are clamped to the axis.
    """
    size = sizes_of(value)[axis]
    length = scalar(node, size)
    one, zero, below = (node.constant(np.array(number, np.int64)) for number in (1, 0, -1))
    least, most = (zero, length) if step > 0 else (below, node.emit(SubOp, length, one))
    first = _limited(node, _from_front(node, start, length), zero, most)
    last = _limited(node, _from_front(node, end, length), least, most)
    if step == 1 and isinstance(size, int) and isinstance(end, int) and end >= size:
        return cut(node, value, {axis: (bound_number(node, first, size), size)})
    between = node.emit(SubOp, last, first) if step > 0 else node.emit(SubOp, first, last)
    count = node.emit(MaxOp, _steps(node, between, abs(step)), zero)
    number = bound_number(node, count, _most(start, end, abs(step), largest(size)))
    if step == 1 and start == 0:
        return leading(node, value, axis, number)
    return gathered(node, value, axis, first, number, step)


def leading(node: NodeBuilder, value: SSAValue, axis: int, number: Size) -> SSAValue:
    """The first `number` elements of an axis, which has at least as many at run time."""
    if largest(number) <= smallest(sizes_of(value)[axis]):
        return cut(node, value, {axis: (0, number)})
    return gathered(node, value, axis, scalar(node, 0), number)


def gathered(node: NodeBuilder, value: SSAValue, axis: int, first: SSAValue, number: Size, step: int = 1) -> SSAValue:
    """`number` elements of an axis from position `first` on; a call fails if they are out of range."""
    if largest(number) == 0 or sizes_of(value)[axis] == 0:
        return cut(node, value, {axis: (0, 0)})
    return node.emit(GatherOp, value, node.emit(AddOp, iota(node, number, step), first), axis=axis)


def _from_front(node: NodeBuilder, bound: Bound, length: SSAValue) -> SSAValue:
    """Convert a bound that counts from the end if negative to one that counts from the start."""
    found = scalar(node, bound)
    if not isinstance(bound, SSAValue) and smallest(bound) >= 0:
        return found
    is_back = node.emit(LessOp, found, scalar(node, 0))
    return node.emit(WhereOp, is_back, node.emit(AddOp, found, length), found)


def _limited(node: NodeBuilder, bound: SSAValue, least: SSAValue, most: SSAValue) -> SSAValue:
    """Clamp a bound to `least` and `most`; the result is `most` if that is less than `least`."""
    return node.emit(MinOp, node.emit(MaxOp, bound, least), most)


def _steps(node: NodeBuilder, between: SSAValue, step: int) -> SSAValue:
    """The number of steps that begin within a distance: the quotient, rounded up."""
    if step == 1:
        return between
    return node.emit(DivOp, node.emit(AddOp, between, scalar(node, step - 1)), scalar(node, step))


def _most(start: Bound, end: Bound, step: int, most: int) -> int:
    """The upper bound of the size of a part of an axis with at most `most` elements."""
    if isinstance(start, int) and isinstance(end, int) and (start < 0) == (end < 0):
        most = min(most, abs(end - start))
    if isinstance(start, int) and start < 0 and isinstance(end, int) and end >= most:
        most = min(most, -start)
    return -(-most // step)


def equal_parts(node: NodeBuilder, size: Size, count: int, may_differ: bool) -> list[Bound]:
    """
    The sizes of `count` equal parts of an axis; the last ones may be smaller or empty if `may_differ`.

    Otherwise their sum differs from `size` if that is no multiple of `count`, which `computed_parts` checks.
    """
    length, zero = scalar(node, size), scalar(node, 0)
    if not may_differ:
        return [node.emit(DivOp, length, scalar(node, count))] * count
    part = _steps(node, length, count)
    found: list[Bound] = []
    left = length
    for _ in range(count):
        own = node.emit(MaxOp, node.emit(MinOp, part, left), zero)
        left = node.emit(SubOp, left, own)
        found.append(own)
    return found


def computed_parts(node: NodeBuilder, value: SSAValue, axis: int, parts: Sequence[Bound]) -> list[SSAValue]:
    """
    Split an axis into parts of the given sizes; a call fails if their sum is not the axis's size.

    A size that may be negative is bound to a symbol like a computed one, which is checked.
    """
    size = sizes_of(value)[axis]
    most = largest(size)
    lengths = [scalar(node, part) for part in parts]
    numbers = [
        part if not isinstance(part, SSAValue) and smallest(part) >= 0 else bound_number(node, length, most, result)
        for result, (part, length) in enumerate(zip(parts, lengths, strict=True))
    ]
    found: list[SSAValue] = []
    position = _checked_start(node, lengths, scalar(node, size))
    for number, length in zip(numbers, lengths, strict=True):
        found.append(gathered(node, value, axis, position, number))
        position = node.emit(AddOp, position, length)
    return found


def checked_part(node: NodeBuilder, value: SSAValue, axis: int, first: Size, last: Size) -> SSAValue:
    """The part of an axis between two positions; a call fails if `last` is before `first`."""
    size = sizes_of(value)[axis]
    lengths = [scalar(node, length) for length in (first, last - first, size - last)]
    number = bound_number(node, lengths[1], largest(last - first))
    start = node.emit(AddOp, lengths[0], _checked_start(node, lengths, scalar(node, size)))
    return gathered(node, value, axis, start, number)


def _checked_start(node: NodeBuilder, lengths: Sequence[SSAValue], size: SSAValue) -> SSAValue:
    """0 if the lengths are not negative and their sum is `size`; otherwise the call fails."""
    zero, left, least = scalar(node, 0), size, scalar(node, 0)
    for length in lengths:
        left, least = node.emit(SubOp, left, length), node.emit(MinOp, least, length)
    is_wrong = node.emit(OrOp, node.emit(NotOp, node.emit(EqualOp, left, zero)), node.emit(LessOp, least, zero))
    return zero_unless(node, is_wrong, "the parts do not make up the axis")


def zero_unless(node: NodeBuilder, is_wrong: SSAValue, failure: str) -> SSAValue:
    """The i64 scalar 0; a call fails with the message `failure` if the scalar `is_wrong` is true."""
    index = node.emit(CastOp, is_wrong, to=i64)
    return node.emit(GatherOp, node.constant(np.zeros(1, np.int64)), index, axis=0, failure=failure)

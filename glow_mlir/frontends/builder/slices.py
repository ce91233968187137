"""
Slices of values: between indices that are known, or that the program computes.

How many elements a slice has whose ends the program computes is a symbol that it binds. Where such a slice begins at an
index that is known, or ends with the axis, it is a slice of `glow_high`; any other is gathered.
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
"""Where a part begins or ends, or how long it is: a size, or what the program computes, a scalar i64."""


MAX_POSITIONS = 1 << 28
"""Places in a row at most: they are a constant, of 2 GiB."""


def cut(node: NodeBuilder, value: SSAValue, bounds: Mapping[int, tuple[Size, Size]]) -> SSAValue:
    """The part of `value` between two places of each given axis; `value` itself where that is all of it."""
    shape = sizes_of(value)
    whole: list[tuple[Size, Size]] = [(0, size) for size in shape]
    wanted = [bounds.get(axis, whole[axis]) for axis in range(len(shape))]
    if wanted == whole:
        return value
    starts, ends = zip(*wanted, strict=True)
    return node.emit(SliceOp, value, starts=starts, ends=ends)


def filled(node: NodeBuilder, value: SSAValue, axis: int, size: int) -> SSAValue:
    """A value with zeros behind it, so that an axis has as many elements, at least as many as it has at most."""
    shape = sizes_of(value)
    if (missing := size - shape[axis]) == 0:
        return value
    behind = node.splat(0, element_of(value), (*shape[:axis], missing, *shape[axis + 1 :]))
    return node.emit(ConcatOp, [value, behind], axis=axis)


def part_of(node: NodeBuilder, value: SSAValue, number: int, axis: int = 0) -> SSAValue:
    """What `value` has at an index of an axis, without that axis."""
    shape = sizes_of(value)
    part = cut(node, value, {axis: (number, number + 1)})
    return node.emit(ReshapeOp, part, shape=(*shape[:axis], *shape[axis + 1 :]))


def iota(node: NodeBuilder, count: Size, step: int = 1, dtype: np.dtype[Any] = np.dtype(np.int64)) -> SSAValue:
    """The places of so many elements, from 0 on, times a step; raises `UnsupportedError` for too many."""
    if largest(count) > MAX_POSITIONS:
        raise node.unsupported(f"{largest(count)} places in a row are more than {MAX_POSITIONS}")
    numbers = node.constant((np.arange(largest(count)) * step).astype(dtype))
    return cut(node, numbers, {0: (0, count)})


# Places that the program computes


def scalar(node: NodeBuilder, bound: Bound) -> SSAValue:
    """A bound as a scalar i64."""
    if isinstance(bound, SSAValue):
        return bound
    if isinstance(bound, int):
        return node.constant(np.array(bound, np.int64))
    return node.emit(ReshapeOp, node.emit(ShapeOp, sizes=(bound,)), shape=())


def bounds_of(node: NodeBuilder, value: SSAValue, role: str) -> list[Bound]:
    """The elements of a list of integers: sizes where they are known, else what the program computes."""
    if (known := node.sizes_unless_computed(value, role)) is not None:
        return list(known)
    wide = value if element_of(value) == i64 else node.emit(CastOp, value, to=i64)
    flat = node.emit(ReshapeOp, wide, shape=(size_of(value),))
    return [part_of(node, flat, position) for position in range(size_of(value))]


def bound_number(node: NodeBuilder, count: SSAValue, most: int, result: int = 0) -> Size:
    """What `count` says, from 0 to `most`, as a size; equal counts of nodes of a kind give one size."""
    numbered = node.once(count, lambda: iota(node, node.bind_symbol(count, most, result=result)))
    return sizes_of(numbered)[0]


def computed_part(node: NodeBuilder, value: SSAValue, axis: int, start: Bound, end: Bound, step: int) -> SSAValue:
    """
    Every `step`-th element of an axis from `start` on, up to `end` without it, wherever the program finds these.

    Both count from the back where they are negative, and are limited to the axis.
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
    """The first elements of an axis, as many as there are at least when the program gets there."""
    if largest(number) <= smallest(sizes_of(value)[axis]):
        return cut(node, value, {axis: (0, number)})
    return gathered(node, value, axis, scalar(node, 0), number)


def gathered(node: NodeBuilder, value: SSAValue, axis: int, first: SSAValue, number: Size, step: int = 1) -> SSAValue:
    """So many elements of an axis from a place on; a call fails where they are not there."""
    if largest(number) == 0 or sizes_of(value)[axis] == 0:
        return cut(node, value, {axis: (0, 0)})
    return node.emit(GatherOp, value, node.emit(AddOp, iota(node, number, step), first), axis=axis)


def _from_front(node: NodeBuilder, bound: Bound, length: SSAValue) -> SSAValue:
    """A bound that counts from the front, of one that counts from the back where it is negative."""
    found = scalar(node, bound)
    if not isinstance(bound, SSAValue) and smallest(bound) >= 0:
        return found
    is_back = node.emit(LessOp, found, scalar(node, 0))
    return node.emit(WhereOp, is_back, node.emit(AddOp, found, length), found)


def _limited(node: NodeBuilder, bound: SSAValue, least: SSAValue, most: SSAValue) -> SSAValue:
    """The nearest place from `least` to `most`, and `most` where that is below."""
    return node.emit(MinOp, node.emit(MaxOp, bound, least), most)


def _steps(node: NodeBuilder, between: SSAValue, step: int) -> SSAValue:
    """How many steps begin within a distance."""
    if step == 1:
        return between
    return node.emit(DivOp, node.emit(AddOp, between, scalar(node, step - 1)), scalar(node, step))


def _most(start: Bound, end: Bound, step: int, most: int) -> int:
    """The elements at most of a part of an axis of `most` elements."""
    if isinstance(start, int) and isinstance(end, int) and (start < 0) == (end < 0):
        most = min(most, abs(end - start))
    if isinstance(start, int) and start < 0 and isinstance(end, int) and end >= most:
        most = min(most, -start)
    return -(-most // step)


def equal_parts(node: NodeBuilder, size: Size, count: int, may_differ: bool) -> list[Bound]:
    """
    The sizes of so many equal parts of an axis, of which the last ones are smaller, or empty, where they may differ.

    Else these do not make up an axis whose elements are no multiple of them.
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
    Parts of those sizes along an axis; a call fails where they do not make up its elements.

    A size that may be negative is bound like one that data decides, which is checked.
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
    """The part of an axis between two places of it; a call fails where the last lies in front of the first."""
    size = sizes_of(value)[axis]
    lengths = [scalar(node, length) for length in (first, last - first, size - last)]
    number = bound_number(node, lengths[1], largest(last - first))
    start = node.emit(AddOp, lengths[0], _checked_start(node, lengths, scalar(node, size)))
    return gathered(node, value, axis, start, number)


def _checked_start(node: NodeBuilder, lengths: Sequence[SSAValue], size: SSAValue) -> SSAValue:
    """0, where parts are none of them negative and make up an axis: else a call fails, since it is looked up."""
    zero, left, least = scalar(node, 0), size, scalar(node, 0)
    for length in lengths:
        left, least = node.emit(SubOp, left, length), node.emit(MinOp, least, length)
    is_wrong = node.emit(OrOp, node.emit(NotOp, node.emit(EqualOp, left, zero)), node.emit(LessOp, least, zero))
    return zero_unless(node, is_wrong, "the parts do not make up the axis")


def zero_unless(node: NodeBuilder, is_wrong: SSAValue, failure: str) -> SSAValue:
    """0 as a scalar i64; a call fails with those words where a truth value holds, a scalar."""
    index = node.emit(CastOp, is_wrong, to=i64)
    return node.emit(GatherOp, node.constant(np.zeros(1, np.int64)), index, axis=0, failure=failure)

"""PyTorch's operators that put elements in order, or find those at a place of that order."""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, EqualOp, MaxOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import IsNanOp, NotOp
from glow_mlir.dialects.glow_high.indexing import GatherElementsOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp, ReduceMaxOp, ReduceSumOp, TopKOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of
from glow_mlir.frontends.torch.places import flat


def ordered(node: TorchNode, value: SSAValue, axis: int, count: int, largest: bool) -> tuple[SSAValue, SSAValue]:
    """The largest or smallest elements of an axis in order, equal ones by their places, and these."""
    element = element_of(value)
    given = node.cast(value, i32) if is_bool(element) else value
    found, places = node.emit_all(TopKOp, given, k=count, axis=axis, largest=largest)
    return node.cast(found, element), places


def length(node: TorchNode, value: SSAValue, axis: int) -> int:
    """How many elements an axis has; raises `UnsupportedError` where that is known at run time only."""
    size = sizes_of(value)[axis]
    if not isinstance(size, int):
        raise node.unsupported("an axis whose size is known at run time only is not put in order")
    return size


def _without_axes(node: TorchNode, value: SSAValue) -> list[SSAValue]:
    """The only element of a value without axes, or none at all, and its place."""
    return [node.reshaped(value), node.splat(0, i64, node.sizes)]


@torch_operator("sort.default")
def sort(node: TorchNode, value: SSAValue, axis: int = -1, descending: bool = False) -> list[SSAValue]:
    """The elements of an axis in order, and their places."""
    if not rank_of(value) or 0 in node.sizes:
        return _without_axes(node, value)
    axis = axis_of(axis, rank_of(value))
    return list(ordered(node, value, axis, length(node, value, axis), descending))


@torch_operator("sort.stable")
def sort_stable(
    node: TorchNode, value: SSAValue, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> list[SSAValue]:
    """The elements of an axis in order, equal ones by their places, and these."""
    return sort(node, value, dim, descending)


@torch_operator("topk.default")
def topk(
    node: TorchNode, value: SSAValue, count: int, axis: int = -1, largest: bool = True, _: bool = True
) -> list[SSAValue]:
    """The largest or smallest elements of an axis in order, and their places."""
    if not rank_of(value) or 0 in node.sizes:
        return [node.reshaped(value) if not rank_of(value) else node.splat(0, node.element, node.sizes),
                node.splat(0, i64, node.sizes)]
    return list(ordered(node, value, axis_of(axis, rank_of(value)), count, largest))


@torch_operator("kthvalue.default")
def kthvalue(node: TorchNode, value: SSAValue, number: int, axis: int = -1, _: bool = False) -> list[SSAValue]:
    """The element of an axis at a place of the order, counted from 1, and where it is."""
    if not rank_of(value) or 0 in node.sizes:
        return _without_axes(node, value)
    axis = axis_of(axis, rank_of(value))
    found = ordered(node, value, axis, number, largest=False)
    return [node.reshaped(cut(node, item, {axis: (number - 1, number)})) for item in found]


# Medians


def _median(node: TorchNode, value: SSAValue, axis: int, skips_missing: bool) -> tuple[SSAValue, SSAValue]:
    """
    The lower of the middle elements along an axis, and its place; the axis has one element.

    NaN is the median of what has one, unless it is skipped.
    """
    size = length(node, value, axis)
    values, places = ordered(node, value, axis, size, largest=False)
    if not is_float(element_of(value)):
        bounds = {axis: ((size - 1) // 2, (size - 1) // 2 + 1)}
        return cut(node, values, bounds), cut(node, places, bounds)
    missing = node.emit(IsNanOp, values)
    if skips_missing:
        numbers = node.cast(node.emit(NotOp, missing), i64)
        count = node.emit(ReduceSumOp, numbers, axes=(axis,), keepdims=True)
        least = node.emit(MaxOp, node.emit(SubOp, count, node.splat(1, i64)), node.splat(0, i64))
        place = node.value(node.of(least, i64) / 2)
    else:
        has_missing = node.emit(ReduceMaxOp, node.cast(missing, i64), axes=(axis,), keepdims=True)
        first = node.emit(ArgMaxOp, node.cast(missing, i64), axis=axis, keepdims=True)
        middle = node.splat((size - 1) // 2, i64)
        place = node.emit(WhereOp, node.emit(EqualOp, has_missing, node.splat(1, i64)), first, middle)
    return tuple(node.emit(GatherElementsOp, item, place, axis=axis) for item in (values, places))


def _along_axis(node: TorchNode, value: SSAValue, axis: int, skips_missing: bool) -> list[SSAValue]:
    if not rank_of(value) or 0 in node.sizes:
        return _without_axes(node, value)
    found = _median(node, value, axis_of(axis, rank_of(value)), skips_missing)
    return [node.reshaped(item) for item in found]


@torch_operator("median.dim")
def median_along(node: TorchNode, value: SSAValue, axis: int, _: bool = False) -> list[SSAValue]:
    """The lower of the middle elements along an axis, and its place; NaN where one is."""
    return _along_axis(node, value, axis, skips_missing=False)


@torch_operator("nanmedian.dim")
def nanmedian_along(node: TorchNode, value: SSAValue, axis: int, _: bool = False) -> list[SSAValue]:
    """The lower of the middle elements along an axis but for NaN, and its place."""
    return _along_axis(node, value, axis, skips_missing=True)


def _of_all(node: TorchNode, value: SSAValue, skips_missing: bool) -> SSAValue:
    if 0 in sizes_of(value):
        least = -(1 << 63) if not is_float(node.element) else float("nan")
        return node.splat(least, node.element)
    return node.reshaped(_median(node, flat(node, value), 0, skips_missing)[0])


@torch_operator("median.default")
def median(node: TorchNode, value: SSAValue) -> SSAValue:
    """The lower of the middle ones of all elements; NaN where one is."""
    return _of_all(node, value, skips_missing=False)


@torch_operator("nanmedian.default")
def nanmedian(node: TorchNode, value: SSAValue) -> SSAValue:
    """The lower of the middle ones of all elements but for NaN."""
    return _of_all(node, value, skips_missing=True)


@torch_operator("mode.default")
def mode(node: TorchNode, value: SSAValue, axis: int = -1, _: bool = False) -> list[SSAValue]:
    """The element that comes most often along an axis, the smallest of several, and its last place."""
    if not rank_of(value) or 0 in node.sizes:
        return _without_axes(node, value)
    axis = axis_of(axis, rank_of(value))
    size = length(node, value, axis)
    values, places = ordered(node, moved_axis(node, value, axis, rank_of(value) - 1), rank_of(value) - 1, size, False)
    sizes, last = sizes_of(values), rank_of(values) - 1
    rows, columns = (node.reshaped(values, (*sizes[:last], *pair)) for pair in ((size, 1), (1, size)))
    equal = node.cast(node.emit(EqualOp, rows, columns), i64)
    counts = node.emit(ReduceSumOp, equal, axes=(last + 1,), keepdims=False)
    first = node.emit(ArgMaxOp, counts, axis=last, keepdims=True)
    count = node.emit(GatherElementsOp, counts, first, axis=last)
    end = node.emit(SubOp, node.emit(AddOp, first, count), node.splat(1, i64))
    end = node.emit(MaxOp, end, first)
    return [node.reshaped(node.emit(GatherElementsOp, item, end, axis=last)) for item in (values, places)]

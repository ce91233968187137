"""PyTorch's operators that replace elements at indices, or combine them with others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float, numpy_dtype
from glow_mlir.dialects.expressions import where
from glow_mlir.dialects.folds import KINDS
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MaxOp, OrOp, WhereOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.torch.data_movement import slice_bounds
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import (
    flat,
    restored,
    scatter_elements,
    scatter_rows,
    scatter_slices,
    transposed,
    with_part,
)
from glow_mlir.frontends.torch.indexing import AdvancedIndex, as_indices, is_mask
from glow_mlir.frontends.torch.node import Operand, TorchNode, axis_of
from glow_mlir.support.symbols import Size, Sizes

# Parts of axes


@torch_operator("slice_scatter.default")
def slice_scatter(
    node: TorchNode,
    value: SSAValue,
    part: SSAValue,
    axis: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: int = 1,
) -> SSAValue:
    """Replace a slice."""
    sizes = sizes_of(value)
    axis = axis_of(axis, len(sizes))
    part = node.expanded(node.cast(part, node.element), (*sizes[:axis], sizes_of(part)[axis], *sizes[axis + 1 :]))
    first, last = slice_bounds(node, sizes[axis], start, end)
    if step == 1:
        return with_part(node, value, part, axis, first, last)
    count = sizes_of(part)[axis]
    if not isinstance(first, int) or not isinstance(count, int):
        raise node.unsupported("steps along an axis whose size is known at run time only are not supported")
    positions = node.constant(first + step * np.arange(count, dtype=np.int64))
    return scatter_slices(node, value, axis, positions, part)


@torch_operator("select_scatter.default")
def select_scatter(node: TorchNode, value: SSAValue, part: SSAValue, axis: int, index: Size) -> SSAValue:
    """Replace the slice at an index of an axis."""
    sizes = sizes_of(value)
    axis = axis_of(axis, len(sizes))
    first = index + sizes[axis] if isinstance(index, int) and index < 0 else index
    part = node.expanded(node.cast(part, node.element), (*sizes[:axis], *sizes[axis + 1 :]))
    part = node.reshaped(part, (*sizes[:axis], 1, *sizes[axis + 1 :]))
    return with_part(node, value, part, axis, first, first + 1)


# Indices of several axes


@torch_operator("index_put.default", "_unsafe_index_put.default", "_index_put_impl.default")
def index_put(
    node: TorchNode,
    value: SSAValue,
    indices: Sequence[SSAValue | None],
    updates: SSAValue,
    accumulate: bool = False,
    _: bool = False,
) -> SSAValue:
    """Replace the elements at joint indices, or add to them if `accumulate`."""
    given = {axis: item for axis, item in enumerate(indices) if item is not None}
    if len(given) == 1:
        ((axis, mask),) = given.items()
        if is_mask(mask):
            return _put_where(node, value, mask, axis, updates, accumulate)
    if not given:
        whole = node.expanded(node.cast(updates, node.element))
        return added(node, value, whole) if accumulate else whole
    position = AdvancedIndex.of(node, value, indices)
    front = transposed(node, value, position.order)
    rest = sizes_of(front)[position.count :]
    order = position.result_order(len(position.sizes) + len(rest))
    inner = (*position.sizes, *rest)
    whole = node.expanded(node.cast(updates, node.element), tuple(inner[axis] for axis in order))
    found = scatter_rows(
        node, front, position.rows(node), restored(node, whole, order), "add" if accumulate else "none"
    )
    return restored(node, found, position.order)


def added(node: TorchNode, one: SSAValue, other: SSAValue) -> SSAValue:
    """The sum of values of the same element type; for truth values the logical or."""
    return node.emit(OrOp if is_bool(element_of(one)) else AddOp, one, other)


def _put_where(
    node: TorchNode, value: SSAValue, mask: SSAValue, axis: int, updates: SSAValue, accumulate: bool
) -> SSAValue:
    """
    Replace the elements or slices where a mask holds, whose axes start at `axis`.

    `updates` has one element or slice for all, or one for each; a call fails if there are too few.
    """
    behind = rank_of(value) - axis - rank_of(mask)
    part = node.cast(updates, node.element)
    own, position = sizes_of(part), rank_of(part) - behind - 1
    if position >= 0 and own[position] == 0:
        return value
    spread: Sizes = (1,) * rank_of(mask)
    if position >= 0 and own[position] != 1:
        chosen = flat(node, node.cast(mask, i1))
        numbers = node.emit(WhereOp, chosen, _numbers(node, chosen), node.splat(0, i64))
        part, spread = node.emit(GatherOp, part, numbers, axis=position), sizes_of(mask)
    part = node.reshaped(part, (*own[: max(position, 0)], *spread, *own[max(position + 1, 0) :]))
    holds = node.reshaped(node.cast(mask, i1), (*sizes_of(mask), *(1,) * behind))
    other = added(node, value, part) if accumulate else part
    return node.expanded(node.emit(WhereOp, holds, other, value))


@torch_operator("put.default")
def put(node: TorchNode, value: SSAValue, indices: SSAValue, updates: SSAValue, accumulate: bool = False) -> SSAValue:
    """Replace elements at indices into the flattened value, or add to them if `accumulate`."""
    at, those = (flat(node, item) for item in (as_indices(node, indices), updates))
    reduction = "add" if accumulate else "none"
    return node.reshaped(scatter_elements(node, flat(node, value), 0, at, those, reduction))


# Reductions at indices of an axis

Scatter = Callable[[SSAValue, SSAValue, str], SSAValue]
"""Value, updates and reduction → the value with updates scattered into it."""

REDUCTIONS: Mapping[str, str] = {
    "add": "add",
    "amax": "max",
    "amin": "min",
    "mean": "add",
    "multiply": "mul",
    "prod": "mul",
    "sum": "add",
}
"""PyTorch's word → ours."""


def identity_of(reduction: str, element: Attribute) -> float:
    """The neutral element of a reduction."""
    number = KINDS[reduction].neutral
    if is_float(element) or not math.isinf(number):
        return number
    if is_bool(element):
        return number > 0
    limits = np.iinfo(numpy_dtype(element))
    return int(limits.min if number < 0 else limits.max)


def reduced_at(
    node: TorchNode, value: SSAValue, updates: SSAValue, scatter: Scatter, word: str, include_self: bool
) -> SSAValue:
    """Combine a value with updates by a reduction; without `include_self`, updated elements start as neutral."""
    element, reduction = element_of(value), REDUCTIONS[word]
    start = value
    if not include_self:
        identity = node.splat(identity_of(reduction, element), element, sizes_of(updates))
        start = scatter(value, identity, "none")
    total = scatter(start, updates, reduction)
    if word != "mean":
        return total
    ones = node.splat(1, element, sizes_of(value))
    first = ones if include_self else scatter(ones, node.splat(0, element, sizes_of(updates)), "none")
    counts = scatter(first, node.splat(1, element, sizes_of(updates)), "add")
    return quotient_of(node, total, node.emit(MaxOp, counts, node.splat(1, element)))


def quotient_of(node: TorchNode, total: SSAValue, counts: SSAValue) -> SSAValue:
    """A mean; means of integers are rounded down."""
    if is_float(element_of(total)):
        return node.emit(DivOp, total, counts)
    whole, part = (node.of(value, element_of(value)) for value in (total, counts))
    found = whole / part
    return node.value(where(found * part > whole, found - 1, found))


def _elements(node: TorchNode, axis: int, indices: SSAValue) -> Scatter:
    def scatter(value: SSAValue, updates: SSAValue, reduction: str) -> SSAValue:
        return scatter_elements(node, value, axis, indices, updates, reduction)

    return scatter


def _slices(node: TorchNode, axis: int, indices: SSAValue) -> Scatter:
    def scatter(value: SSAValue, updates: SSAValue, reduction: str) -> SSAValue:
        return scatter_slices(node, value, axis, indices, updates, reduction)

    return scatter


def _with_axes(node: TorchNode, *values: SSAValue) -> list[SSAValue]:
    """Give values without axes one axis."""
    return [node.reshaped(value, sizes_of(value) or (1,)) for value in values]


@torch_operator("scatter_reduce.two")
def scatter_reduce(
    node: TorchNode,
    value: SSAValue,
    axis: int,
    indices: SSAValue,
    updates: SSAValue,
    reduce: str,
    *,
    include_self: bool = True,
) -> SSAValue:
    """Combine elements with updates, each at its own position except along `axis`, where the index applies."""
    if 0 in sizes_of(indices) or 0 in node.sizes:
        return value
    into, at, those = _with_axes(node, value, as_indices(node, indices), node.cast(updates, node.element))
    those = cut(node, those, {position: (0, size) for position, size in enumerate(sizes_of(at))})
    scatter = _elements(node, axis_of(axis, rank_of(into)), at)
    return node.reshaped(reduced_at(node, into, those, scatter, reduce, include_self))


@torch_operator("scatter.src", "scatter.value")
def scatter(node: TorchNode, value: SSAValue, axis: int, indices: SSAValue, updates: Operand) -> SSAValue:
    """Replace elements, each at its own position except along `axis`, where the index applies."""
    return scatter_with(node, value, axis, indices, updates, reduce=None)


@torch_operator("scatter_add.default")
def scatter_add(node: TorchNode, value: SSAValue, axis: int, indices: SSAValue, updates: SSAValue) -> SSAValue:
    """Add updates, each at its own position except along `axis`, where the index applies."""
    return scatter_with(node, value, axis, indices, updates, reduce="add")


@torch_operator("scatter.reduce", "scatter.value_reduce")
def scatter_with(
    node: TorchNode, value: SSAValue, axis: int, indices: SSAValue, updates: Operand, *, reduce: str | None
) -> SSAValue:
    """Replace elements, or combine them by `reduce`, each at its own position except along `axis`."""
    if 0 in sizes_of(indices) or 0 in node.sizes:
        return value
    into, at = _with_axes(node, value, as_indices(node, indices))
    if isinstance(updates, SSAValue) and rank_of(updates) == rank_of(indices):
        (those,) = _with_axes(node, updates)
        those = cut(node, those, {position: (0, size) for position, size in enumerate(sizes_of(at))})
    else:
        those = node.expanded(node.tensor(updates), sizes_of(at))
    reduction = "none" if reduce is None else REDUCTIONS[reduce]
    found = scatter_elements(node, into, axis_of(axis, rank_of(into)), at, those, reduction)
    return node.reshaped(found)


@torch_operator("index_reduce.default")
def index_reduce(
    node: TorchNode,
    value: SSAValue,
    axis: int,
    indices: SSAValue,
    updates: SSAValue,
    reduce: str,
    *,
    include_self: bool = True,
) -> SSAValue:
    """Combine the slices at indices of an axis with slices of updates."""
    if 0 in sizes_of(updates) or 0 in node.sizes:
        return value
    into, at, those = _with_axes(node, value, as_indices(node, indices), updates)
    scatter = _slices(node, axis_of(axis, rank_of(into)), at)
    return node.reshaped(reduced_at(node, into, those, scatter, reduce, include_self))


# Truth values


@torch_operator("masked_scatter.default")
def masked_scatter(node: TorchNode, value: SSAValue, mask: SSAValue, source: SSAValue) -> SSAValue:
    """Replace the elements where the mask holds by consecutive elements of a source."""
    if 0 in node.sizes:
        return node.expanded(value)
    if 0 in sizes_of(source):
        return node.expanded(value)
    chosen = flat(node, node.expanded(mask))
    numbers = _numbers(node, chosen)
    wanted = node.emit(WhereOp, chosen, numbers, node.splat(0, i64))
    those = node.emit(GatherOp, flat(node, source), wanted, axis=0)
    found = node.emit(WhereOp, chosen, those, flat(node, node.expanded(value)))
    return node.reshaped(found)


def _numbers(node: TorchNode, chosen: SSAValue) -> SSAValue:
    """The number of true elements before each one."""
    return node.emit(CumSumOp, node.cast(chosen, i64), axis=0, exclusive=True)


@torch_operator("masked_scatter_backward.default")
def masked_scatter_backward(node: TorchNode, gradient: SSAValue, mask: SSAValue, _: Sequence[Size]) -> SSAValue:
    """The gradients where the mask holds, packed to the front and followed by zeros."""
    zeros = node.splat(0, node.element, node.sizes)
    if 0 in node.sizes or 0 in sizes_of(gradient):
        return zeros
    chosen = flat(node, node.expanded(mask, sizes_of(gradient)))
    positions = node.emit(WhereOp, chosen, _numbers(node, chosen), node.splat(0, i64))
    own = node.emit(WhereOp, chosen, flat(node, gradient), node.splat(0, node.element))
    return node.reshaped(scatter_elements(node, flat(node, zeros), 0, positions, own, "add"))

"""PyTorch's histograms: the number of elements in each of several bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import is_float, numpy_dtype
from glow_mlir.dialects.expressions import equal, maximum, minimum, where
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, AndOp, DivOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import FloorOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMinOp, ReduceSumOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat, scatter_elements
from glow_mlir.frontends.torch.node import TorchNode
from glow_mlir.frontends.torch.searching import positions_among
from glow_mlir.support.symbols import product_of


@torch_operator("histc.default")
def histc(node: TorchNode, value: SSAValue, bins: int = 100, least: float = 0, most: float = 0) -> SSAValue:
    """The number of elements in each of `bins` equal bins of a range, by default the range of the elements."""
    zeros = node.splat(0, node.element, node.sizes)
    numbers = flat(node, value)
    if 0 in sizes_of(value):
        return zeros
    element = element_of(numbers)
    if least == most:
        low, high = (node.emit(op, numbers, axes=(0,), keepdims=False) for op in (ReduceMinOp, ReduceMaxOp))
    else:
        low, high = node.tensor(least, element), node.tensor(most, element)
    x, first, last = (node.of(item, element) for item in (numbers, low, high))
    same = node.formulas.kept(first >= last)
    first, last = node.formulas.kept(where(same, first - 1, first)), node.formulas.kept(where(same, last + 1, last))
    inside = node.value((x >= first) & (x <= last))
    position = node.value((x - first) * bins / (last - first))
    position = node.cast(node.emit(FloorOp, position) if is_float(element) else position, i64)
    limited = node.value(minimum(maximum(node.of(position, i64), 0), bins - 1))
    chosen = node.emit(WhereOp, inside, limited, node.splat(0, i64))
    return scatter_elements(node, zeros, 0, chosen, node.cast(inside, node.element), "add")


def _edges(node: TorchNode, column: SSAValue, bins: int, bounds: Sequence[float]) -> SSAValue:
    """The edges of equal bins of a range, by default the range of the column's elements."""
    element = element_of(column)
    if bounds:
        low, high = (node.of(node.splat(bound, element)) for bound in bounds)
    elif 0 in sizes_of(column):
        low, high = (node.of(node.splat(bound, element)) for bound in (0, 1))
    else:
        extremes = (node.emit(op, column, axes=(0,), keepdims=False) for op in (ReduceMinOp, ReduceMaxOp))
        low, high = (node.of(value, element) for value in extremes)
    same = equal(low, high)
    first, last = (
        node.formulas.kept(where(same, edge, bound)) for edge, bound in ((low - 0.5, low), (high + 0.5, high))
    )
    step = node.formulas.kept((last - first) / bins)
    ahead, behind = (
        node.of(_numbers(node, numbers, element), element) for numbers in (range(bins + 1), range(bins, -1, -1))
    )
    is_first_half = node.of(node.constant(np.arange(bins + 1) < (bins + 1) // 2), i1)
    return node.value(where(is_first_half, first + step * ahead, last - step * behind))


def _numbers(node: TorchNode, numbers: Sequence[int], element: Attribute) -> SSAValue:
    return node.constant(np.array(numbers, numpy_dtype(element)))


def _columns(node: TorchNode, value: SSAValue) -> list[SSAValue]:
    """The coordinates of points, which are along the last axis, as one vector each."""
    *outer, width = sizes_of(value)
    points = node.reshaped(value, (product_of(outer), width))
    assert isinstance(width, int)
    return [flat(node, cut(node, points, {1: (axis, axis + 1)})) for axis in range(width)]


def _histogram(
    node: TorchNode, columns: Sequence[SSAValue], edges: Sequence[SSAValue], weight: SSAValue | None, density: bool
) -> SSAValue:
    """The number of points, or their total weight, in each box between edges; the last edges are inclusive."""
    counts = [sizes_of(item)[0] - 1 for item in edges]
    position, inside = node.splat(0, i64, sizes_of(columns[0])), node.splat(1, i1, sizes_of(columns[0]))
    for column, bounds, count in zip(columns, edges, counts, strict=True):
        first, last = (node.reshaped(cut(node, bounds, {0: (at, at + 1)}), ()) for at in (0, count))
        x = node.of(column, element_of(column))
        fits = node.value((x >= node.of(first, element_of(first))) & (x <= node.of(last, element_of(last))))
        own = node.emit(SubOp, positions_among(node, bounds, column, right=True), node.splat(1, i64))
        limited = node.value(maximum(minimum(node.of(own, i64), node.of(node.tensor(count - 1, i64), i64)), 0))
        position = node.emit(AddOp, node.emit(MulOp, position, node.tensor(count, i64)), limited)
        inside = node.emit(AndOp, inside, fits)
    element = element_of(columns[0])
    amount = node.splat(1, element) if weight is None else flat(node, weight)
    own = node.emit(WhereOp, inside, amount, node.splat(0, element))
    zeros = node.splat(0, element, (product_of(counts),))
    found = node.reshaped(scatter_elements(node, zeros, 0, position, own, "add"), tuple(counts))
    return _density(node, found, edges) if density else found


def _density(node: TorchNode, counts: SSAValue, edges: Sequence[SSAValue]) -> SSAValue:
    """The density: the share of each box divided by its volume."""
    axes = tuple(range(len(edges)))
    found = node.emit(DivOp, counts, node.emit(ReduceSumOp, counts, axes=axes, keepdims=True))
    for axis, bounds in enumerate(edges):
        size = sizes_of(bounds)[0]
        widths = node.emit(SubOp, cut(node, bounds, {0: (1, size)}), cut(node, bounds, {0: (0, size - 1)}))
        ones = (1,) * (len(edges) - axis - 1)
        found = node.emit(DivOp, found, node.reshaped(widths, (*(1,) * axis, size - 1, *ones)))
    return found


@torch_operator("histogram.bins_tensor")
def histogram(
    node: TorchNode, value: SSAValue, edges: SSAValue, *, weight: SSAValue | None = None, density: bool = False
) -> list[SSAValue]:
    """The number of elements between edges, and the edges."""
    return [_histogram(node, [flat(node, value)], [edges], weight, density), edges]


@torch_operator("histogram.bin_ct")
def histogram_of_equal_parts(
    node: TorchNode,
    value: SSAValue,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: SSAValue | None = None,
    density: bool = False,
) -> list[SSAValue]:
    """The number of elements in each of equal bins of a range, and the bins' edges."""
    column = flat(node, value)
    return histogram(node, column, _edges(node, column, bins, range or ()), weight=weight, density=density)


def _all_edges(node: TorchNode, value: SSAValue, bins: Sequence[int], bounds: Sequence[float] | None) -> list[SSAValue]:
    """The edges of equal bins of each coordinate of points."""
    pairs = [(bounds or ())[2 * axis : 2 * axis + 2] for axis in range(len(bins))]
    columns = _columns(node, value)
    return [_edges(node, *item) for item in zip(columns, bins, pairs, strict=True)]


@torch_operator("_histogramdd_bin_edges.default")
def histogramdd_edges(
    node: TorchNode, value: SSAValue, bins: Sequence[int], *, range: Sequence[float] | None = None, **_: object
) -> list[SSAValue]:
    """The edges of equal bins of each coordinate of points."""
    return _all_edges(node, value, bins, range)


@torch_operator("_histogramdd_from_bin_cts.default")
def histogramdd_of_equal_parts(
    node: TorchNode,
    value: SSAValue,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: SSAValue | None = None,
    density: bool = False,
) -> SSAValue:
    """The number of points in each of equal boxes."""
    return _histogram(node, _columns(node, value), _all_edges(node, value, bins, range), weight, density)


@torch_operator("_histogramdd_from_bin_tensors.default")
def histogramdd(
    node: TorchNode,
    value: SSAValue,
    edges: Sequence[SSAValue],
    *,
    weight: SSAValue | None = None,
    density: bool = False,
) -> SSAValue:
    """The number of points in each of the boxes between edges."""
    return _histogram(node, _columns(node, value), edges, weight, density)

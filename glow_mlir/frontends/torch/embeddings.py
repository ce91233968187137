"""PyTorch's embedding bags, which reduce rows of tables, and their gradients."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import where
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, EqualOp, MaxOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import NotOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp, ReduceSumOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.builder.slices import cut, iota
from glow_mlir.frontends.torch.distances import norm_along_last
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat, scatter_elements, scatter_slices
from glow_mlir.frontends.torch.indexing import as_indices
from glow_mlir.frontends.torch.node import TorchNode

SUM, MEAN, MAX = range(3)
"""The reductions of the rows of a bag."""


def bags_of(node: TorchNode, indices: SSAValue, offsets: SSAValue) -> SSAValue:
    """The bag of each index, given the starts of bags."""
    (count,) = sizes_of(indices)
    zeros = node.splat(0, i64, (count + 1,))
    ones = node.splat(1, i64, sizes_of(offsets))
    marks = scatter_elements(node, zeros, 0, as_indices(node, offsets), ones, "add")
    numbers = node.emit(CumSumOp, cut(node, marks, {0: (0, count)}), axis=0)
    return node.emit(SubOp, numbers, node.splat(1, i64))


def _is_counted(node: TorchNode, indices: SSAValue, padding: int) -> SSAValue | None:
    """The mask of indices that are not the padding; `None` if there is no padding."""
    if padding < 0:
        return None
    return node.emit(NotOp, node.emit(EqualOp, indices, node.splat(padding, element_of(indices))))


def _column(node: TorchNode, value: SSAValue) -> SSAValue:
    return node.reshaped(value, (*sizes_of(value), 1))


@torch_operator("_embedding_bag.default", "_embedding_bag_forward_only.default")
def embedding_bag(
    node: TorchNode,
    weight: SSAValue,
    indices: SSAValue,
    offsets: SSAValue,
    scales_by_frequency: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    factors: SSAValue | None = None,
    has_end: bool = False,
    padding: int = -1,
) -> list[SSAValue | None]:
    """
    The sum, mean or maximum of the rows of each bag.

    Further results are the bag of each index, the sizes of bags, and the indices of the rows with maxima.
    """
    indices = as_indices(node, indices)
    sizes, (count,) = node.sizes, sizes_of(indices)
    if has_end:
        offsets = cut(node, offsets, {0: (0, sizes[0])})
    if count == 0 or sizes[0] == 0:
        return _empty(node)
    bags = bags_of(node, indices, offsets)
    counted = _is_counted(node, indices, padding)
    ones = node.splat(1, i64, (count,)) if counted is None else node.cast(counted, i64)
    lengths = scatter_elements(node, node.splat(0, i64, (sizes[0],)), 0, bags, ones, "add")
    rows = node.emit(GatherOp, weight, indices, axis=0)
    most = None
    if mode == MAX:
        found, most = _largest(node, rows, indices, bags, counted, lengths)
    else:
        rows = node.cast(rows, node.wide)
        if factors is not None:
            rows = node.emit(MulOp, rows, _column(node, node.cast(factors, node.wide)))
        if counted is not None:
            rows = node.emit(WhereOp, _column(node, counted), rows, node.splat(0, node.wide))
        found = scatter_slices(node, node.splat(0, node.wide, sizes), 0, bags, rows, "add")
        if mode == MEAN:
            divisor = node.emit(MaxOp, node.cast(lengths, node.wide), node.splat(1, node.wide))
            found = node.emit(DivOp, found, _column(node, divisor))
        found = node.cast(found, node.element)
    # PyTorch gives no sizes for sums, and gives them in place of rows for means.
    kept = {SUM: (None, None), MEAN: (lengths, lengths), MAX: (lengths, most)}[mode]
    return [found, *_saved(node, bags, *kept)]


def _empty(node: TorchNode) -> list[SSAValue | None]:
    """The results if there are no indices."""
    return [node.splat(0, *node.result(number)) for number in range(len(node.expected))]


def _saved(node: TorchNode, bags: SSAValue, lengths: SSAValue | None, most: SSAValue | None) -> list[SSAValue]:
    """The results saved for the gradient; zeros if their traced sizes differ, because they are not used."""
    found: list[SSAValue] = []
    for number, value in enumerate((bags, lengths, most), start=1):
        element, sizes = node.result(number)
        fits = value is not None and sizes_of(value) == sizes
        found.append(node.cast(value, element) if fits and value is not None else node.splat(0, element, sizes))
    return found


def _largest(
    node: TorchNode, rows: SSAValue, indices: SSAValue, bags: SSAValue, counted: SSAValue | None, lengths: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The maxima of the rows of each bag, and the indices of their rows; both are 0 for empty bags."""
    element, sizes = node.element, node.sizes
    (count,) = sizes_of(indices)
    low = node.splat(float("-inf"), element)
    if counted is not None:
        rows = node.emit(WhereOp, _column(node, counted), rows, low)
    start = node.splat(float("-inf"), element, sizes)
    most = scatter_slices(node, start, 0, bags, rows, "max")
    is_some = _column(node, node.emit(NotOp, node.emit(EqualOp, lengths, node.splat(0, i64))))
    found = node.emit(WhereOp, is_some, most, node.splat(0, element))
    is_most = node.emit(EqualOp, rows, node.emit(GatherOp, most, bags, axis=0))
    if counted is not None:
        is_most = node.value(node.of(is_most, i1) & node.of(_column(node, counted), i1))
    zero = node.splat(0, i64)
    positions = node.emit(WhereOp, is_most, _column(node, iota(node, count)), node.splat(1 << 62, i64))
    first = scatter_slices(node, node.splat(1 << 62, i64, sizes), 0, bags, positions, "min")
    own = node.emit(GatherOp, node.cast(indices, i64), node.emit(WhereOp, is_some, first, zero), axis=0)
    return found, node.emit(WhereOp, is_some, own, zero)


@torch_operator("_embedding_bag_backward.default")
def embedding_bag_backward(
    node: TorchNode,
    gradient: SSAValue,
    indices: SSAValue,
    offsets: SSAValue,
    _: SSAValue,
    lengths: SSAValue,
    most: SSAValue,
    rows: int,
    scales_by_frequency: bool,
    mode: int,
    sparse: bool,
    factors: SSAValue | None = None,
    padding: int = -1,
) -> SSAValue:
    """The gradient of bags with respect to the table."""
    if sparse:
        raise node.unsupported("sparse gradients are not supported")
    zeros = node.splat(0, node.element, node.sizes)
    if 0 in sizes_of(indices) or 0 in sizes_of(gradient):
        return zeros
    indices = as_indices(node, indices)
    if mode == MAX:
        is_some = _column(node, node.emit(NotOp, node.emit(EqualOp, lengths, node.splat(0, element_of(lengths)))))
        own = node.emit(WhereOp, is_some, gradient, node.splat(0, node.element))
        return scatter_elements(node, zeros, 0, as_indices(node, most), own, "add")
    bags = bags_of(node, indices, cut(node, offsets, {0: (0, sizes_of(gradient)[0])}))
    own = node.emit(GatherOp, gradient, bags, axis=0)
    if mode == MEAN:
        counts = node.emit(GatherOp, node.cast(lengths, node.element), bags, axis=0)
        own = node.emit(DivOp, own, _column(node, node.emit(MaxOp, counts, node.splat(1, node.element))))
    if factors is not None:
        own = node.emit(MulOp, own, _column(node, factors))
    if (counted := _is_counted(node, indices, padding)) is not None:
        own = node.emit(WhereOp, _column(node, counted), own, node.splat(0, node.element))
    if scales_by_frequency:
        own = node.emit(DivOp, own, _column(node, _frequencies(node, indices)))
    return scatter_slices(node, zeros, 0, indices, own, "add")


def _frequencies(node: TorchNode, indices: SSAValue) -> SSAValue:
    """The frequency of each index."""
    ones = node.splat(1, i64, sizes_of(indices))
    counts = scatter_elements(node, node.splat(0, i64, node.sizes[:1]), 0, indices, ones, "add")
    return node.cast(node.emit(GatherOp, counts, indices, axis=0), node.element)


@torch_operator("_embedding_bag_per_sample_weights_backward.default")
def factors_backward(
    node: TorchNode,
    gradient: SSAValue,
    weight: SSAValue,
    indices: SSAValue,
    offsets: SSAValue,
    _: SSAValue,
    mode: int,
    padding: int = -1,
) -> SSAValue:
    """The gradient of sums of rows with respect to the factors of the rows."""
    if 0 in node.sizes or 0 in sizes_of(gradient):
        return node.splat(0, node.element, node.sizes)
    indices = as_indices(node, indices)
    bags = bags_of(node, indices, cut(node, offsets, {0: (0, sizes_of(gradient)[0])}))
    own = node.emit(GatherOp, gradient, bags, axis=0)
    product = node.emit(MulOp, own, node.emit(GatherOp, weight, indices, axis=0))
    found = node.emit(ReduceSumOp, product, axes=(1,), keepdims=False)
    if (counted := _is_counted(node, indices, padding)) is None:
        return found
    return node.emit(WhereOp, counted, found, node.splat(0, node.element))


@torch_operator("embedding_renorm.default")
def embedding_renorm(node: TorchNode, weight: SSAValue, indices: SSAValue, most: float, p: float) -> SSAValue:
    """Scale the rows at indices down to the p-norm `most` if theirs is larger."""
    if 0 in sizes_of(indices) or 0 in node.sizes:
        return weight
    positions = flat(node, as_indices(node, indices))
    is_read = scatter_elements(
        node, node.splat(0, i64, node.sizes[:1]), 0, positions, node.splat(1, i64, sizes_of(positions)), "max"
    )
    wide = node.cast(weight, node.wide)
    norms = node.of(norm_along_last(node, wide, p), node.wide)
    scale = where((norms > most) & (node.of(is_read, i64) > 0), most / (norms + 1e-7), 1)
    return node.cast(node.emit(MulOp, wide, _column(node, node.value(scale))), node.element)

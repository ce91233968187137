"""PyTorch's distances between rows, and their gradients."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, equal, power, where
from glow_mlir.dialects.glow_high.elementwise_binary import SubOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.reductions import ReduceL1Op, ReduceL2Op, ReduceMaxOp, ReduceSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat, scatter_slices
from glow_mlir.frontends.torch.node import TorchNode

_BY_NORM = {1.0: ReduceL1Op, 2.0: ReduceL2Op}
"""The orders of norms with a reduction."""


def norm_along_last(node: TorchNode, value: SSAValue, p: float) -> SSAValue:
    """The p-norm of rows; for p = 0 the number of nonzero elements, for infinity the largest magnitude."""
    axes = (rank_of(value) - 1,)
    if 0 in sizes_of(value)[-1:]:
        return node.splat(0, element_of(value), sizes_of(value)[:-1])
    if p in _BY_NORM:
        return node.emit(_BY_NORM[p], value, axes=axes, keepdims=False)
    if math.isinf(p):
        return node.emit(ReduceMaxOp, node.emit(AbsOp, value), axes=axes, keepdims=False)
    element = element_of(value)
    x = node.of(value, element)
    terms = where(equal(x, 0), x, 1) if p == 0 else power(abs(x), p)
    total = node.emit(ReduceSumOp, node.value(terms), axes=axes, keepdims=False)
    return total if p == 0 else node.value(power(node.of(total, element), 1 / p))


def norm_gradient(node: TorchNode, difference: SSAValue, gradient: SSAValue, distance: SSAValue, p: float) -> SSAValue:
    """The gradient of a p-norm of rows; `gradient` and `distance` have one element for each row."""
    element = element_of(difference)
    d, g, n = (node.of(value, element) for value in (difference, gradient, distance))
    return node.value(_norm_gradient(d, g, n, p))


def _sign(x: Tensor) -> Tensor:
    return where(x > 0, x * 0 + 1, where(x < 0, x * 0 - 1, x))


def _norm_gradient(d: Tensor, g: Tensor, n: Tensor, p: float) -> Tensor:
    if p == 0:
        return g * 0
    if p == 1:
        return g * _sign(d)
    if p == 2:
        return where(equal(n, 0), 0, g * d / n)
    if math.isinf(p):
        return where(equal(abs(d), n), g * _sign(d), 0)
    is_zero = equal(n, 0) | equal(d, 0) if p < 1 else equal(n, 0)
    return where(is_zero, 0, _sign(d) * power(abs(d), p - 1) * g / power(n, p - 1))


def _differences(node: TorchNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """The differences of all pairs of rows: [..., P, R, M] from [..., P, M] and [..., R, M]."""
    one, other = sizes_of(left), sizes_of(right)
    rows = node.reshaped(left, (*one[:-1], 1, one[-1]))
    columns = node.reshaped(right, (*other[:-2], 1, *other[-2:]))
    return node.emit(SubOp, rows, columns)


@torch_operator("_cdist_forward.default")
def cdist(node: TorchNode, left: SSAValue, right: SSAValue, p: float, _: int | None = None) -> SSAValue:
    """The p-norms of the differences of all pairs of rows."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    return node.expanded(norm_along_last(node, _differences(node, left, right), float(p)))


@torch_operator("_cdist_backward.default")
def cdist_backward(
    node: TorchNode, gradient: SSAValue, left: SSAValue, right: SSAValue, p: float, distance: SSAValue
) -> SSAValue:
    """The gradient of distances with respect to the first operand."""
    if 0 in node.sizes or 0 in sizes_of(gradient):
        return node.splat(0, node.element, node.sizes)
    difference = _differences(node, left, right)
    own, those = (node.reshaped(value, (*sizes_of(value), 1)) for value in (gradient, distance))
    found = norm_gradient(node, difference, own, those, float(p))
    total = node.emit(ReduceSumOp, found, axes=(rank_of(found) - 2,), keepdims=False)
    return node.expanded(total)


def _pairs(node: TorchNode, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The indices of the first and of the second row of each pair."""
    count = sizes_of(value)[0]
    if not isinstance(count, int):
        raise node.unsupported("pairs of rows whose number is known at run time only are not supported")
    first, second = np.triu_indices(count, 1)
    return node.constant(first.astype(np.int64)), node.constant(second.astype(np.int64))


@torch_operator("_pdist_forward.default")
def pdist(node: TorchNode, value: SSAValue, p: float = 2) -> SSAValue:
    """The p-norms of the differences of all pairs of distinct rows."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    rows = [node.emit(GatherOp, value, positions, axis=0) for positions in _pairs(node, value)]
    return norm_along_last(node, node.emit(SubOp, *rows), float(p))


@torch_operator("_pdist_backward.default")
def pdist_backward(node: TorchNode, gradient: SSAValue, value: SSAValue, p: float, distance: SSAValue) -> SSAValue:
    """The gradient of distances between pairs with respect to the rows."""
    zeros = node.splat(0, node.element, node.sizes)
    if 0 in node.sizes or 0 in sizes_of(gradient):
        return zeros
    first, second = _pairs(node, value)
    difference = node.emit(SubOp, *(node.emit(GatherOp, value, positions, axis=0) for positions in (first, second)))
    own, those = (node.reshaped(item, (*sizes_of(item), 1)) for item in (gradient, distance))
    found = norm_gradient(node, difference, own, those, float(p))
    added = scatter_slices(node, zeros, 0, first, found, "add")
    return scatter_slices(node, added, 0, second, node.value(-node.of(found)), "add")


@torch_operator("dist.default")
def dist(node: TorchNode, one: SSAValue, other: SSAValue, p: float = 2) -> SSAValue:
    """The p-norm of the difference of all elements."""
    difference = node.emit(SubOp, *(node.cast(value, node.wide) for value in node.promoted(one, other)))
    return node.cast(norm_along_last(node, flat(node, difference), float(p)), node.element)

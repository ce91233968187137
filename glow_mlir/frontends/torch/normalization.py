"""PyTorch's normalizations of rows, images and groups of channels, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, exp, reduce_mean, reduce_sum, sqrt
from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.glow_high.elementwise_binary import EqualOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.generics import computed
from glow_mlir.frontends.torch.batch_normalization import as_traced, vector
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of, wide_type
from glow_mlir.support.symbols import Size, product_of

# ---- softmax ---------------------------------------------------------------------------------------------------


@torch_operator("_softmax.default", "softmax.int")
def softmax(node: TorchNode, x: SSAValue, axis: int, *_: Any, **__: Any) -> SSAValue:
    """The softmax along an axis."""
    return node.emit(ops.SoftmaxOp, node.tensor(x), axis=axis_of(axis, rank_of(x)))


@torch_operator("_safe_softmax.default")
def safe_softmax(node: TorchNode, x: SSAValue, axis: int, *_: Any, **__: Any) -> SSAValue:
    """The softmax along an axis; 0 for rows that are all minus infinity."""
    value, position = node.tensor(x), axis_of(axis, rank_of(x))
    if 0 in sizes_of(x):
        return value
    peak = node.emit(ReduceMaxOp, value, axes=(position,)) if rank_of(x) else value
    hidden = node.emit(EqualOp, peak, node.scalar(-math.inf, element_of(value)))
    return node.emit(WhereOp, hidden, node.scalar(0, element_of(value)), softmax(node, x, axis))


@torch_operator("_log_softmax.default", "log_softmax.int")
def log_softmax(node: TorchNode, x: SSAValue, axis: int, *_: Any, **__: Any) -> SSAValue:
    """The logarithm of the softmax along an axis."""
    return node.emit(ops.LogSoftmaxOp, node.tensor(x), axis=axis_of(axis, rank_of(x)))


def _along(count: int, axis: int, *names: str) -> Signature:
    """The signature of operands and a result with the same `count` axes, one of which is called `row`."""
    axes = tuple("row" if position == axis else f"d{position}" for position in range(count))
    return Signature(tuple(Access(name, axes) for name in names), Access("y", axes))


@torch_operator("_softmax_backward_data.default")
def softmax_backward(node: TorchNode, gradient: SSAValue, output: SSAValue, axis: int, *_: Any) -> SSAValue:
    """output · (gradient - Σ gradient · output)."""

    def formula(y: Tensor, g: Tensor) -> Tensor:
        return y * (g - reduce_sum(g * y, "row"))

    return _by_row(node, formula, output, gradient, axis)


@torch_operator("_log_softmax_backward_data.default")
def log_softmax_backward(node: TorchNode, gradient: SSAValue, output: SSAValue, axis: int, *_: Any) -> SSAValue:
    """gradient - exp(output) · Σ gradient."""

    def formula(y: Tensor, g: Tensor) -> Tensor:
        return g - exp(y) * reduce_sum(g, "row")

    return _by_row(node, formula, output, gradient, axis)


def _by_row(node: TorchNode, formula: Any, output: SSAValue, gradient: SSAValue, axis: int) -> SSAValue:
    """Apply a formula to a result and its gradient along an axis; a scalar is a row of one element."""
    sizes = sizes_of(output) or (1,)
    y, g = (node.reshaped(value, sizes) for value in (output, node.cast(gradient, element_of(output))))
    position = axis_of(axis, len(sizes))
    found = computed(node, _along(len(sizes), position, "output", "gradient"), formula, y, g)
    return node.cast(node.reshaped(found, node.sizes), node.element)


# ---- rows ------------------------------------------------------------------------------------------------------

MEAN = Signature.parse("x[i, j] -> mean[i]")
DEVIATION = Signature.parse("x[i, j], mean[i] -> r[i]")


def _mean(x: Tensor) -> Tensor:
    return reduce_mean(x, "j")


def _statistics(node: TorchNode, rows: SSAValue, epsilon: float) -> tuple[SSAValue, SSAValue]:
    """The mean of each row, and 1 / sqrt(variance + epsilon)."""

    def inverse(x: Tensor, mean: Tensor) -> Tensor:
        difference = x - mean
        return 1.0 / sqrt(reduce_mean(difference * difference, "j") + epsilon)

    mean = computed(node, MEAN, _mean, rows)
    return mean, computed(node, DEVIATION, inverse, rows, mean)


@torch_operator("native_layer_norm.default")
def layer_norm(
    node: TorchNode,
    x: SSAValue,
    shape: Sequence[Size],
    weight: SSAValue | None,
    bias: SSAValue | None,
    epsilon: float,
) -> list[SSAValue | None]:
    """Normalize over the last axes; the result, mean, and inverse deviation."""
    if 0 in sizes_of(x):
        return as_traced(node, [None, None, None])
    element, first = wide_type(element_of(x)), rank_of(x) - len(shape)
    sizes, wide = sizes_of(x)[first:], node.cast(x, element)
    scale = node.splat(1, element, sizes) if weight is None else node.cast(weight, element)
    operands = [wide, scale] if bias is None else [wide, scale, node.cast(bias, element)]
    result = node.emit(ops.LayerNormalizationOp, *operands, axis=first, epsilon=epsilon)
    rows = node.reshaped(wide, (product_of(sizes_of(x)[:first]), product_of(sizes)))
    found = [node.reshaped(value, node.result(1)[1]) for value in _statistics(node, rows, epsilon)]
    return as_traced(node, [result, *found])


BY_ROW = Signature.parse("x[i, j], g[i, j], mean[i], r[i], scale[j] -> y[i, j]")
BY_COLUMN = Signature.parse("x[i, j], g[i, j], mean[i], r[i] -> y[j]")


def _row_gradient(x: Tensor, g: Tensor, mean: Tensor, r: Tensor, scale: Tensor) -> Tensor:
    n, s = (x - mean) * r, g * scale
    return (s - reduce_mean(s, "j") - n * reduce_mean(s * n, "j")) * r


def _column_gradient(x: Tensor, g: Tensor, mean: Tensor, r: Tensor) -> Tensor:
    return reduce_sum(g * ((x - mean) * r), "i")


@torch_operator("native_layer_norm_backward.default")
def layer_norm_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    shape: Sequence[Size],
    mean: SSAValue,
    inverse_deviation: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    wanted: Sequence[bool],
) -> list[SSAValue | None]:
    """
    The gradients of a layer normalization with respect to input, scale and offset, from the forward statistics.

    With normalized rows n, inverse deviations r and s = g·scale, they are r·(s - mean(s) - n·mean(s·n)), Σg·n and Σg.
    """
    element, first = wide_type(element_of(x)), rank_of(x) - len(shape)
    if 0 in sizes_of(x):
        return as_traced(node, [None, None, None])
    outer, inner = product_of(sizes_of(x)[:first]), product_of(sizes_of(x)[first:])
    rows = [node.reshaped(node.cast(value, element), (outer, inner)) for value in (x, gradient)]
    statistics = [node.reshaped(node.cast(value, element), (outer,)) for value in (mean, inverse_deviation)]
    found: list[SSAValue | None] = [None, None, None]
    if wanted[0]:
        scale = None if weight is None else node.reshaped(weight, (inner,))
        scale = vector(node, scale, 1.0, inner, element)
        found[0] = node.reshaped(computed(node, BY_ROW, _row_gradient, *rows, *statistics, scale), sizes_of(x))
    if wanted[1]:
        columns = computed(node, BY_COLUMN, _column_gradient, *rows, *statistics)
        found[1] = node.reshaped(columns, sizes_of(x)[first:])
    if wanted[2]:
        sums = node.emit(ReduceSumOp, rows[1], axes=(0,), keepdims=False)
        found[2] = node.reshaped(sums, sizes_of(x)[first:])
    return as_traced(node, found)


# ---- groups of channels ----------------------------------------------------------------------------------------


@torch_operator("native_group_norm.default")
def group_norm(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    batch: Size,
    channels: int,
    positions: Size,
    groups: int,
    epsilon: float,
) -> list[SSAValue | None]:
    """Normalize over groups of channels of an image; the result, mean, and inverse deviation."""
    if 0 in sizes_of(x):
        return as_traced(node, [None, None, None])
    element = wide_type(element_of(x))
    wide = node.cast(x, element)
    operands = [vector(node, value, fill, channels, element) for value, fill in ((weight, 1.0), (bias, 0.0))]
    result = node.emit(ops.GroupNormalizationOp, wide, *operands, axis=1, groups=groups, epsilon=epsilon)
    rows = node.reshaped(wide, (batch * groups, channels // groups * positions))
    found = [node.reshaped(value, (batch, groups)) for value in _statistics(node, rows, epsilon)]
    return as_traced(node, [result, *found])


@torch_operator("native_group_norm_backward.default")
def group_norm_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    mean: SSAValue,
    inverse_deviation: SSAValue,
    weight: SSAValue | None,
    batch: Size,
    channels: int,
    positions: Size,
    groups: int,
    wanted: Sequence[bool],
) -> list[SSAValue | None]:
    """The gradients of a group normalization with respect to input, weight and bias; see `layer_norm_backward`."""
    if 0 in sizes_of(x):
        return as_traced(node, [None, None, None])
    element, members = wide_type(element_of(x)), channels // groups
    image = (batch, groups, members, positions)
    value, g = (node.reshaped(node.cast(operand, element), image) for operand in (x, gradient))
    m, r = (node.reshaped(node.cast(operand, element), (batch, groups, 1, 1)) for operand in (mean, inverse_deviation))
    n = node.emit(MulOp, node.emit(SubOp, value, m), r)
    found: list[SSAValue | None] = [None, None, None]
    if wanted[0]:
        scale = node.reshaped(vector(node, weight, 1.0, channels, element), (1, groups, members, 1))
        s = node.emit(MulOp, g, scale)
        average, along = (_over_group(node, part) for part in (s, node.emit(MulOp, s, n)))
        inner = node.emit(SubOp, node.emit(SubOp, s, average), node.emit(MulOp, n, along))
        found[0] = node.reshaped(node.emit(MulOp, inner, r), sizes_of(x))
    for position, part in ((1, node.emit(MulOp, g, n)), (2, g)):
        if wanted[position]:
            found[position] = node.reshaped(node.emit(ReduceSumOp, part, axes=(0, 3), keepdims=False), (channels,))
    return as_traced(node, found)


def _over_group(node: TorchNode, value: SSAValue) -> SSAValue:
    return node.emit(ReduceMeanOp, value, axes=(2, 3))

"""PyTorch's normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, EqualOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import ReciprocalOp, SqrtOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMeanOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of, wide_type
from glow_mlir.support.symbols import product_of


@torch_operator("_softmax.default", "softmax.int")
def softmax(node: TorchNode, x: SSAValue, axis: int, *_: Any, **__: Any) -> SSAValue:
    """The softmax along an axis."""
    return node.emit(ops.SoftmaxOp, node.tensor(x), axis=axis_of(axis, rank_of(x)))


@torch_operator("_safe_softmax.default")
def safe_softmax(node: TorchNode, x: SSAValue, axis: int, *_: Any, **__: Any) -> SSAValue:
    """The softmax along an axis, 0 where all is minus infinity."""
    value, place = node.tensor(x), axis_of(axis, rank_of(x))
    if 0 in sizes_of(x):
        return value
    peak = node.emit(ReduceMaxOp, value, axes=(place,)) if rank_of(x) else value
    hidden = node.emit(EqualOp, peak, node.scalar(-math.inf, element_of(value)))
    return node.emit(WhereOp, hidden, node.scalar(0, element_of(value)), softmax(node, x, axis))


@torch_operator("_log_softmax.default", "log_softmax.int")
def log_softmax(node: TorchNode, x: SSAValue, axis: int, *_: Any, **__: Any) -> SSAValue:
    """The logarithm of the softmax along an axis."""
    return node.emit(ops.LogSoftmaxOp, node.tensor(x), axis=axis_of(axis, rank_of(x)))


def _channels(node: TorchNode, value: SSAValue | None, fill: float, x: SSAValue) -> SSAValue:
    """A number for each channel, in the element type of statistics."""
    element = wide_type(element_of(x)) if value is None else element_of(value)
    return node.splat(fill, element, (sizes_of(x)[1],)) if value is None else value


@torch_operator("_native_batch_norm_legit_no_training.default")
def batch_norm_inference(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    mean: SSAValue,
    variance: SSAValue,
    momentum: float,
    epsilon: float,
) -> list[SSAValue]:
    """With running statistics; the statistics that PyTorch saves are empty."""
    scale, offset = _channels(node, weight, 1, x), _channels(node, bias, 0, x)
    operands = [node.cast(value, element_of(x)) for value in (scale, offset, mean, variance)]
    normalized = node.emit(ops.BatchNormalizationOp, x, *operands, epsilon=epsilon, axis=1)
    return [normalized, *(node.splat(0, *node.result(number)) for number in range(1, len(node.expected)))]


@torch_operator("_native_batch_norm_legit_functional.default")
def batch_norm_training(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue,
    running_variance: SSAValue,
    training: bool,
    momentum: float,
    epsilon: float,
) -> list[SSAValue]:
    """With the statistics of the batch: the result, mean, inverse deviation, and running statistics."""
    if not training:
        inferred = batch_norm_inference(node, x, weight, bias, running_mean, running_variance, momentum, epsilon)
        return [*inferred, running_mean, running_variance][:5]
    scale, offset = _channels(node, weight, 1, x), _channels(node, bias, 0, x)
    axes = [axis for axis in range(rank_of(x)) if axis != 1]
    wide = node.cast(x, element_of(running_mean))
    mean = node.emit(ReduceMeanOp, wide, axes=axes, keepdims=False)
    centred = node.emit(SubOp, wide, node.emit(ReduceMeanOp, wide, axes=axes))
    variance = node.emit(ReduceMeanOp, node.emit(MulOp, centred, centred), axes=axes, keepdims=False)
    operands = [node.cast(value, element_of(x)) for value in (scale, offset, mean, variance)]
    result = node.emit(ops.BatchNormalizationOp, x, *operands, epsilon=epsilon, axis=1)
    deviation = node.emit(SqrtOp, node.emit(AddOp, variance, node.scalar(epsilon, element_of(variance))))
    count = product_of(sizes_of(x)[axis] for axis in axes)
    unbiased = node.emit(MulOp, variance, _bessel(node, count, variance))
    running = (_blend(node, running_mean, mean, momentum), _blend(node, running_variance, unbiased, momentum))
    return [result, mean, node.emit(ReciprocalOp, deviation), *running]


def _bessel(node: TorchNode, count: Any, like: SSAValue) -> SSAValue:
    """count / (count - 1)."""
    element = element_of(like)
    if isinstance(count, int):
        return node.scalar(count / max(count - 1, 1), element)
    return node.emit(DivOp, node.tensor(count, element), node.tensor(count - 1, element))


def _blend(node: TorchNode, before: SSAValue, now: SSAValue, momentum: float) -> SSAValue:
    """The running statistic."""
    element = element_of(before)
    kept = node.emit(MulOp, before, node.scalar(1 - momentum, element))
    return node.emit(AddOp, kept, node.emit(MulOp, node.cast(now, element), node.scalar(momentum, element)))


@torch_operator("native_layer_norm.default")
def layer_norm(
    node: TorchNode,
    x: SSAValue,
    shape: Sequence[int],
    weight: SSAValue | None,
    bias: SSAValue | None,
    epsilon: float,
) -> list[SSAValue]:
    """Over the last axes: the result, mean, and inverse deviation."""
    first = rank_of(x) - len(shape)
    axes = tuple(range(first, rank_of(x)))
    sizes = sizes_of(x)[first:]
    scale = node.splat(1, element_of(x), sizes) if weight is None else node.cast(weight, element_of(x))
    operands = [x, scale] if bias is None else [x, scale, node.cast(bias, element_of(x))]
    result = node.emit(ops.LayerNormalizationOp, *operands, axis=first, epsilon=epsilon)
    wide = node.cast(x, node.result(1)[0])
    mean = node.emit(ReduceMeanOp, wide, axes=axes)
    centred = node.emit(SubOp, wide, mean)
    variance = node.emit(ReduceMeanOp, node.emit(MulOp, centred, centred), axes=axes)
    deviation = node.emit(SqrtOp, node.emit(AddOp, variance, node.scalar(epsilon, element_of(variance))))
    return [result, mean, node.emit(ReciprocalOp, deviation)]

"""PyTorch's batch normalization and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import ReciprocalOp, SqrtOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, wide_type
from glow_mlir.support.symbols import Size, product_of


def vector(node: TorchNode, value: SSAValue | None, fill: float, count: Size, element: Attribute) -> SSAValue:
    """A vector with one number per channel, in an element type; filled with `fill` if it is absent."""
    return node.splat(fill, element, (count,)) if value is None else node.cast(value, element)


def normalized(
    node: TorchNode,
    x: SSAValue,
    scale: SSAValue | None,
    offset: SSAValue | None,
    mean: SSAValue,
    variance: SSAValue,
    epsilon: float,
) -> SSAValue:
    """(x - mean) / sqrt(variance + epsilon) · scale + offset for each channel, computed in f32 or wider."""
    element, channels = wide_type(element_of(x)), sizes_of(x)[1]
    given = ((scale, 1.0), (offset, 0.0), (mean, 0.0), (variance, 1.0))
    operands = [vector(node, value, fill, channels, element) for value, fill in given]
    result = node.emit(BatchNormalizationOp, node.cast(x, element), *operands, epsilon=epsilon, axis=1)
    return node.cast(result, element_of(x))


def as_traced(node: TorchNode, results: Sequence[SSAValue | None]) -> list[SSAValue | None]:
    """Convert results to the traced element types; results that PyTorch leaves empty become zeros."""
    found: list[SSAValue | None] = []
    for expected, result in zip(node.expected, results, strict=False):
        if expected is None:
            found.append(None)
        elif result is None or sizes_of(result) != expected[1]:
            found.append(node.splat(0, *expected))
        else:
            found.append(node.cast(result, expected[0]))
    return found


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
) -> list[SSAValue | None]:
    """Normalize with running statistics; the saved statistics are empty."""
    return as_traced(node, [normalized(node, x, weight, bias, mean, variance, epsilon), None, None])


@torch_operator("_native_batch_norm_legit_functional.default", "native_batch_norm.default")
def batch_norm(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue | None,
    running_variance: SSAValue | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> list[SSAValue | None]:
    """
    Normalize with the statistics of the batch in training, else with running ones.

    Results are the normalized value, mean and inverse deviation of the batch, and the running statistics.
    """
    running = running_mean, running_variance
    if not training:
        assert running_mean is not None
        assert running_variance is not None
        result = normalized(node, x, weight, bias, running_mean, running_variance, epsilon)
        return as_traced(node, [result, None, None, *running])
    found = _in_training(node, x, weight, bias, running, momentum, epsilon)
    return as_traced(node, found)


@torch_operator("_native_batch_norm_legit.no_stats")
def batch_norm_alone(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> list[SSAValue | None]:
    """Normalize with the statistics of the batch, without running ones."""
    return as_traced(node, _in_training(node, x, weight, bias, (None, None), momentum, epsilon))


@torch_operator("_batch_norm_with_update_functional.default")
def batch_norm_with_update(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue,
    running_variance: SSAValue,
    momentum: float,
    epsilon: float,
) -> list[SSAValue | None]:
    """Normalize in training; an empty reserve comes before the running statistics."""
    found = _in_training(node, x, weight, bias, (running_mean, running_variance), momentum, epsilon)
    return as_traced(node, [*found[:3], None, *found[3:]])


def _in_training(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running: tuple[SSAValue | None, SSAValue | None],
    momentum: float,
    epsilon: float,
) -> list[SSAValue | None]:
    """Normalize with the statistics of the batch; the result, mean, inverse deviation, and running statistics."""
    wide, (channels, axes) = node.cast(x, wide_type(element_of(x))), _channels(x)
    average = node.emit(ReduceMeanOp, wide, axes=axes)
    centred = node.emit(SubOp, wide, average)
    squares = node.emit(ReduceMeanOp, node.emit(MulOp, centred, centred), axes=axes)
    mean, variance = (node.reshaped(value, (channels,)) for value in (average, squares))
    result = normalized(node, x, weight, bias, mean, variance, epsilon)
    count = product_of(sizes_of(x)[axis] for axis in axes)
    unbiased = node.emit(MulOp, variance, _bessel(node, count, variance))
    blended = [
        None if before is None else _blend(node, before, now, momentum)
        for before, now in zip(running, (mean, unbiased), strict=True)
    ]
    return [result, mean, _inverse_deviation(node, variance, epsilon), *blended]


def _channels(x: SSAValue) -> tuple[Size, tuple[int, ...]]:
    """The number of channels, and all other axes."""
    return sizes_of(x)[1], tuple(axis for axis in range(rank_of(x)) if axis != 1)


def _inverse_deviation(node: TorchNode, variance: SSAValue, epsilon: float) -> SSAValue:
    """1 / sqrt(variance + epsilon)."""
    shifted = node.emit(AddOp, variance, node.scalar(epsilon, element_of(variance)))
    return node.emit(ReciprocalOp, node.emit(SqrtOp, shifted))


def _bessel(node: TorchNode, count: Size, like: SSAValue) -> SSAValue:
    """count / (count - 1), infinite for one element as in PyTorch."""
    element = element_of(like)
    if isinstance(count, int):
        return node.scalar(count / (count - 1) if count != 1 else float("inf"), element)
    return node.emit(DivOp, node.tensor(count, element), node.tensor(count - 1, element))


def _blend(node: TorchNode, before: SSAValue, now: SSAValue, momentum: float) -> SSAValue:
    """Update a running statistic: (1 - momentum) · before + momentum · now."""
    element = element_of(now)
    kept = node.emit(MulOp, node.cast(before, element), node.scalar(1 - momentum, element))
    return node.emit(AddOp, kept, node.emit(MulOp, now, node.scalar(momentum, element)))


# ---- gradients -------------------------------------------------------------------------------------------------


@torch_operator("native_batch_norm_backward.default")
def batch_norm_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    weight: SSAValue | None,
    running_mean: SSAValue | None,
    running_variance: SSAValue | None,
    mean: SSAValue | None,
    inverse_deviation: SSAValue | None,
    training: bool,
    epsilon: float,
    wanted: Sequence[bool],
) -> list[SSAValue | None]:
    """
    The gradients with respect to input, weight and bias.

    With c = x - mean and r = 1 / deviation, they are (g - mean(g) - c·r²·mean(g·c))·weight·r, or g·weight·r with
    running statistics; Σg·c·r; and Σg.
    """
    element = wide_type(element_of(x))
    channels, axes = _channels(x)
    if not training:
        assert running_mean is not None
        assert running_variance is not None
        mean, inverse = running_mean, _inverse_deviation(node, node.cast(running_variance, element), epsilon)
    else:
        assert mean is not None
        assert inverse_deviation is not None
        inverse = node.cast(inverse_deviation, element)

    def of_channels(value: SSAValue) -> SSAValue:
        return node.reshaped(value, (channels, *(1 for _ in axes[1:])))

    def total(value: SSAValue) -> SSAValue:
        return node.emit(ReduceSumOp, value, axes=axes, keepdims=False)

    g = node.cast(gradient, element)
    centred = node.emit(SubOp, node.cast(x, element), of_channels(node.cast(mean, element)))
    weighted, offset = total(node.emit(MulOp, g, centred)), total(g)
    factor = node.emit(MulOp, inverse, vector(node, weight, 1.0, channels, element))
    inner = g
    if training:
        share = _share(node, product_of(sizes_of(x)[axis] for axis in axes), element)
        along = node.emit(MulOp, node.emit(MulOp, weighted, share), node.emit(MulOp, inverse, inverse))
        inner = node.emit(SubOp, g, node.emit(MulOp, centred, of_channels(along)))
        inner = node.emit(SubOp, inner, of_channels(node.emit(MulOp, offset, share)))
    by_input = node.emit(MulOp, inner, of_channels(factor))
    found = [by_input, node.emit(MulOp, weighted, inverse), offset]
    return as_traced(node, [value if is_wanted else None for value, is_wanted in zip(found, wanted, strict=True)])


def _share(node: TorchNode, count: Size, element: Attribute) -> SSAValue:
    """1 / count."""
    if isinstance(count, int):
        return node.scalar(1 / max(count, 1), element)
    return node.emit(ReciprocalOp, node.tensor(count, element))


@torch_operator("batch_norm_backward.default")
def batch_norm_with_update_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    weight: SSAValue,
    running_mean: SSAValue | None,
    running_variance: SSAValue | None,
    mean: SSAValue | None,
    inverse_deviation: SSAValue | None,
    training: bool,
    epsilon: float,
    wanted: Sequence[bool],
    *_: Any,
) -> list[SSAValue | None]:
    """The gradients of `_batch_norm_with_update`, whose reserve is empty."""
    operands = gradient, x, weight, running_mean, running_variance, mean, inverse_deviation
    return batch_norm_backward(node, *operands, training, epsilon, wanted)

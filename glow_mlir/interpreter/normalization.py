"""Meaning of normalization, in f64, rounded once."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.properties import integer, number
from glow_mlir.ir.registry import semantics

Array = np.ndarray


@semantics(ops.HardmaxOp)
def hardmax(op: ops.HardmaxOp, x: Array) -> Array:
    """1 at the position of the maximum."""
    result = np.zeros_like(x)
    if x.size:
        np.put_along_axis(result, x.argmax(axis=integer(op.axis), keepdims=True), 1, integer(op.axis))
    return result


def _per_channel(values: Array, rank: int, axis: int) -> Array:
    """A vector with an element a channel, in f64, ready to broadcast."""
    shape = [1] * rank
    shape[axis] = -1
    return values.astype(np.float64).reshape(shape)


@semantics(ops.BatchNormalizationOp)
def batch_normalization(
    op: ops.BatchNormalizationOp, x: Array, scale: Array, offset: Array, mean: Array, variance: Array
) -> Array:
    """Subtract the mean, divide by the deviation, scale and offset, channel by channel."""
    scale, offset, mean, variance = (
        _per_channel(values, x.ndim, integer(op.axis)) for values in (scale, offset, mean, variance)
    )
    factor = scale / np.sqrt(variance + number(op.epsilon))
    return ((x.astype(np.float64) - mean) * factor + offset).astype(x.dtype)


def _standardized(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """`x` with mean 0 and variance 1 over `axes`, in f64."""
    exact = x.astype(np.float64)
    difference = exact - exact.mean(axis=axes, keepdims=True)
    return difference / np.sqrt((difference**2).mean(axis=axes, keepdims=True) + epsilon)


@semantics(ops.InstanceNormalizationOp)
def instance_normalization(op: ops.InstanceNormalizationOp, x: Array, scale: Array, offset: Array) -> Array:
    """Statistics over all axes but batch and channels."""
    axis = op.channel_axis()
    axes = tuple(other for other in range(1, x.ndim) if other != axis)
    result = _standardized(x, axes, number(op.epsilon))
    return (result * _per_channel(scale, x.ndim, axis) + _per_channel(offset, x.ndim, axis)).astype(x.dtype)


@semantics(ops.GroupNormalizationOp)
def group_normalization(op: ops.GroupNormalizationOp, x: Array, scale: Array, offset: Array) -> Array:
    """Statistics over all axes but batch and groups."""
    axis, groups = op.channel_axis(), integer(op.groups)
    grouped = x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])
    axes = tuple(other for other in range(1, grouped.ndim) if other != axis)
    result = _standardized(grouped, axes, number(op.epsilon)).reshape(x.shape)
    return (result * _per_channel(scale, x.ndim, axis) + _per_channel(offset, x.ndim, axis)).astype(x.dtype)


@semantics(ops.LrnOp)
def lrn(op: ops.LrnOp, x: Array) -> Array:
    """Divided by a power of the sum of squares of the neighbouring channels."""
    exact = np.moveaxis(x.astype(np.float64), integer(op.axis), -1)
    channels = exact.shape[-1]
    before, after = op.reach()
    squares = np.pad(exact**2, [*[(0, 0)] * (x.ndim - 1), (before, after)])
    total = sum((squares[..., start : start + channels] for start in range(before + after + 1)), np.zeros(()))
    base = number(op.bias) + number(op.alpha) / integer(op.size) * total
    return np.moveaxis(exact / base ** number(op.beta), -1, integer(op.axis)).astype(x.dtype)

"""Lowerings of normalization to reductions and elementwise operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, EqualOp, MulOp, PowOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, ExpOp, LogOp, SqrtOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp, ReduceMaxOp, ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.support.symbols import product_of


def _shifted(op: ops.AlongAxis, emit: Emitter) -> SSAValue:
    """The input minus its maximum, so that no exponential overflows."""
    return emit(SubOp, op.input, emit(ReduceMaxOp, op.input, axes=(integer(op.axis),)))


@lowering(ops.SoftmaxOp)
def softmax(op: ops.SoftmaxOp, emit: Emitter) -> SSAValue:
    """Exponentials over their sum."""
    powers = emit(ExpOp, _shifted(op, emit))
    return emit(DivOp, powers, emit(ReduceSumOp, powers, axes=(integer(op.axis),)))


@lowering(ops.LogSoftmaxOp)
def log_softmax(op: ops.LogSoftmaxOp, emit: Emitter) -> SSAValue:
    """The difference from the logarithm of the sum of exponentials."""
    shifted = _shifted(op, emit)
    total = emit(ReduceSumOp, emit(ExpOp, shifted), axes=(integer(op.axis),))
    return emit(SubOp, shifted, emit(LogOp, total))


@lowering(ops.HardmaxOp)
def hardmax(op: ops.HardmaxOp, emit: Emitter) -> SSAValue:
    """Whether each position is that of the maximum, as a number."""
    shape = sizes_of(op.input)
    axis = normalize_axis(integer(op.axis), len(shape))
    sizes = (shape[axis], *(1,) * (len(shape) - axis - 1))
    places = np.arange(largest(shape[axis]), dtype=np.int64).reshape(-1, *sizes[1:])
    positions = emit.constant(places, "positions")
    if places.shape != sizes:
        positions = emit(SliceOp, positions, starts=(0,) * len(sizes), ends=sizes)
    peak = emit(ArgMaxOp, op.input, axis=axis)
    return emit(CastOp, emit(EqualOp, peak, positions), to=element_of(op.input))


def _deviation(variance: SSAValue, epsilon: float, emit: Emitter) -> SSAValue:
    """sqrt(variance + epsilon)."""
    return emit(SqrtOp, emit(AddOp, variance, emit.splat(epsilon, variance)))


def _per_channel(values: SSAValue, trailing: int, emit: Emitter) -> SSAValue:
    """A vector with an element a channel, with `trailing` axes of size one behind it."""
    return emit(ReshapeOp, values, shape=(*shape_of(values), *(1,) * trailing)) if trailing else values


@lowering(ops.BatchNormalizationOp)
def batch_normalization(op: ops.BatchNormalizationOp, emit: Emitter) -> SSAValue:
    """A product and a sum with one factor and one addend a channel, which fold where the operands are constants."""
    factor = emit(DivOp, op.scale, _deviation(op.variance, number(op.epsilon), emit))
    addend = emit(SubOp, op.offset, emit(MulOp, op.mean, factor))
    rank = rank_of(op.input)
    trailing = rank - 1 - normalize_axis(integer(op.axis), rank)
    factor, addend = (_per_channel(value, trailing, emit) for value in (factor, addend))
    return emit(AddOp, emit(MulOp, op.input, factor), addend)


def _standardized(value: SSAValue, axes: Sequence[int], epsilon: float, emit: Emitter) -> SSAValue:
    """`value` with mean 0 and variance 1 over `axes`."""
    difference = emit(SubOp, value, emit(ReduceMeanOp, value, axes=axes))
    variance = emit(ReduceMeanOp, emit(MulOp, difference, difference), axes=axes)
    return emit(DivOp, difference, _deviation(variance, epsilon, emit))


@lowering(ops.InstanceNormalizationOp)
def instance_normalization(op: ops.InstanceNormalizationOp, emit: Emitter) -> SSAValue:
    """Statistics over all axes but batch and channels."""
    rank, axis = rank_of(op.input), op.channel_axis()
    axes = [other for other in range(1, rank) if other != axis]
    value = _standardized(op.input, axes, number(op.epsilon), emit)
    scale, offset = (_per_channel(operand, rank - 1 - axis, emit) for operand in (op.scale, op.offset))
    return emit(AddOp, emit(MulOp, value, scale), offset)


@lowering(ops.GroupNormalizationOp)
def group_normalization(op: ops.GroupNormalizationOp, emit: Emitter) -> SSAValue:
    """Groups become an axis of their own while the statistics are taken."""
    shape, axis, grouped = sizes_of(op.input), op.channel_axis(), op.grouped_shape()
    axes = [other for other in range(1, len(grouped)) if other != axis]
    value = _standardized(emit(ReshapeOp, op.input, shape=grouped), axes, number(op.epsilon), emit)
    value = emit(ReshapeOp, value, shape=shape)
    scale, offset = (_per_channel(operand, len(shape) - 1 - axis, emit) for operand in (op.scale, op.offset))
    return emit(AddOp, emit(MulOp, value, scale), offset)


@lowering(ops.LrnOp)
def lrn(op: ops.LrnOp, emit: Emitter) -> SSAValue:
    """
    The mean of squares over a window of channels is an average pool along one axis.

    The channels become the only spatial axis, the axes behind them the channels of the pool: no element moves.
    """
    shape = sizes_of(op.input)
    axis = normalize_axis(integer(op.axis), len(shape))
    rows = (product_of(shape[:axis]), shape[axis], product_of(shape[axis + 1 :]))
    squares = emit(ReshapeOp, emit(MulOp, op.input, op.input), shape=rows)
    mean = emit(AvgPoolOp, squares, kernel_shape=(integer(op.size),), pads=op.reach(), count_include_pad=True)
    scaled = emit(MulOp, emit(ReshapeOp, mean, shape=shape), emit.splat(number(op.alpha), mean))
    base = emit(AddOp, scaled, emit.splat(number(op.bias), mean))
    return emit(DivOp, op.input, emit(PowOp, base, emit.splat(number(op.beta), mean)))

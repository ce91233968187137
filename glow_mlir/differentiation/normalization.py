"""Gradients of normalization by statistics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, PowOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import SqrtOp
from glow_mlir.dialects.glow_high.normalization import (
    BatchNormalizationOp,
    GroupNormalizationOp,
    HardmaxOp,
    InstanceNormalizationOp,
    LrnOp,
    OverImages,
)
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import normalize_axis, rank_of, sizes_of
from glow_mlir.differentiation.contributions import Contributions, reshaped
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.symbols import Sizes, product_of


@gradient(HardmaxOp)
def hardmax(op: HardmaxOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """0 wherever it has a derivative."""
    return {}


def _reciprocal_deviation(variance: SSAValue, epsilon: float, emit: Emitter) -> SSAValue:
    """1 / sqrt(variance + epsilon)."""
    deviation = emit(SqrtOp, emit(AddOp, variance, emit.splat(epsilon, variance)))
    return emit(DivOp, emit.splat(1, variance), deviation)


def _per_channel(values: SSAValue, like: SSAValue, axis: int, emit: Emitter) -> SSAValue:
    """A vector with an element a channel, so that it broadcasts to an image with channels along `axis`."""
    behind = rank_of(like) - 1 - axis
    return emit(ReshapeOp, values, shape=(*sizes_of(values), *(1,) * behind)) if behind else values


def _sum_of_channels(value: SSAValue, axis: int, emit: Emitter) -> SSAValue:
    """A sum for each channel."""
    return emit(ReduceSumOp, value, axes=[other for other in range(rank_of(value)) if other != axis], keepdims=False)


@gradient(BatchNormalizationOp)
def batch_normalization(op: BatchNormalizationOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """With r = 1 / sqrt(variance + epsilon): g·scale·r, and by the parameters Σg and Σg·(x - mean)."""
    axis = normalize_axis(integer(op.axis), rank_of(op.input))

    @cache
    def r() -> SSAValue:
        return _reciprocal_deviation(op.variance, number(op.epsilon), emit)

    @cache
    def factor() -> SSAValue:
        return emit(MulOp, op.scale, r())

    @cache
    def total() -> SSAValue:
        return _sum_of_channels(cotangent, axis, emit)

    @cache
    def scaled_total() -> SSAValue:
        """Σg·(x - mean)·r."""
        difference = emit(SubOp, op.input, _per_channel(op.mean, op.input, axis, emit))
        return emit(MulOp, _sum_of_channels(emit(MulOp, cotangent, difference), axis, emit), r())

    def by_variance() -> SSAValue:
        slope = emit(MulOp, emit(MulOp, factor(), r()), emit.splat(-0.5, r()))
        return emit(MulOp, scaled_total(), slope)

    return {
        "input": lambda: emit(MulOp, cotangent, _per_channel(factor(), op.input, axis, emit)),
        "scale": scaled_total,
        "offset": total,
        "mean": lambda: emit(MulOp, emit(MulOp, total(), factor()), emit.splat(-1, r())),
        "variance": by_variance,
    }


@gradient(InstanceNormalizationOp)
def instance_normalization(op: InstanceNormalizationOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """Statistics over all axes but batch and channels."""
    rank, axis = rank_of(op.input), op.channel_axis()
    return _over_images(op, cotangent, sizes_of(op.input), [i for i in range(1, rank) if i != axis], emit)


@gradient(GroupNormalizationOp)
def group_normalization(op: GroupNormalizationOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """Statistics over the channels of a group, and all axes but the batch."""
    grouped, axis = op.grouped_shape(), op.channel_axis()
    return _over_images(op, cotangent, grouped, [i for i in range(1, len(grouped)) if i != axis], emit)


def _over_images(
    op: OverImages, cotangent: SSAValue, shape: Sizes, axes: Sequence[int], emit: Emitter
) -> Contributions:
    """
    With n the normalized input and r = 1 / sqrt(variance + epsilon): r·(s - mean of s - n·mean of s·n), s = g·scale.

    Statistics are taken along `axes` of the input in that shape.
    """
    axis, whole = op.channel_axis(), sizes_of(op.input)

    def mean(value: SSAValue) -> SSAValue:
        return emit(ReduceMeanOp, value, axes=axes)

    @cache
    def normalized() -> tuple[SSAValue, SSAValue]:
        """The normalized input, and r."""
        x = reshaped(op.input, shape, emit)
        difference = emit(SubOp, x, mean(x))
        r = _reciprocal_deviation(mean(emit(MulOp, difference, difference)), number(op.epsilon), emit)
        return emit(MulOp, difference, r), r

    def by_input() -> SSAValue:
        n, r = normalized()
        scaled = reshaped(emit(MulOp, cotangent, _per_channel(op.scale, op.input, axis, emit)), shape, emit)
        along = emit(MulOp, n, mean(emit(MulOp, scaled, n)))
        centered = emit(SubOp, emit(SubOp, scaled, mean(scaled)), along)
        return reshaped(emit(MulOp, centered, r), whole, emit)

    def by_scale() -> SSAValue:
        return _sum_of_channels(emit(MulOp, cotangent, reshaped(normalized()[0], whole, emit)), axis, emit)

    return {"input": by_input, "scale": by_scale, "offset": lambda: _sum_of_channels(cotangent, axis, emit)}


@gradient(LrnOp)
def lrn(op: LrnOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    With b = bias + alpha·(mean of squares): g·b^-beta - 2·alpha·beta·x·(mean of g·x·b^(-beta - 1)).

    The last mean is over the channels whose windows have the channel.
    """
    shape = sizes_of(op.input)
    axis = normalize_axis(integer(op.axis), len(shape))
    rows = (product_of(shape[:axis]), shape[axis], product_of(shape[axis + 1 :]))
    before, after = op.reach()

    def mean(value: SSAValue, pads: tuple[int, int]) -> SSAValue:
        flat = emit(ReshapeOp, value, shape=rows)
        pooled = emit(AvgPoolOp, flat, kernel_shape=(before + after + 1,), pads=pads, count_include_pad=True)
        return emit(ReshapeOp, pooled, shape=shape)

    def by_input() -> SSAValue:
        x, alpha, beta = op.input, number(op.alpha), number(op.beta)
        squares = mean(emit(MulOp, x, x), (before, after))
        base = emit(AddOp, emit(MulOp, squares, emit.splat(alpha, x)), emit.splat(number(op.bias), x))
        power = emit(MulOp, cotangent, emit(PowOp, base, emit.splat(-beta, x)))
        others = mean(emit(MulOp, x, emit(DivOp, power, base)), (after, before))
        return emit(SubOp, power, emit(MulOp, emit(MulOp, x, others), emit.splat(2 * alpha * beta, x)))

    return {"input": by_input}

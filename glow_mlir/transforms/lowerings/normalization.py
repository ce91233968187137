"""Lowerings of normalization to reductions and elementwise operators."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, PowOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import ExpOp, LogOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceSumOp
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import normalize_axis, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.support.symbols import product_of


def _shifted(op: ops.AlongAxis, emit: Emitter) -> SSAValue:
    """Subtract the maximum, so that no exponential overflows."""
    return emit(SubOp, op.input, emit(ReduceMaxOp, op.input, axes=(integer(op.axis),)))


@lowering(ops.SoftmaxOp)
def softmax(op: ops.SoftmaxOp, emit: Emitter) -> SSAValue:
    """Divide exponentials by their sum."""
    powers = emit(ExpOp, _shifted(op, emit))
    return emit(DivOp, powers, emit(ReduceSumOp, powers, axes=(integer(op.axis),)))


@lowering(ops.LogSoftmaxOp)
def log_softmax(op: ops.LogSoftmaxOp, emit: Emitter) -> SSAValue:
    """Subtract the logarithm of the sum of exponentials."""
    shifted = _shifted(op, emit)
    total = emit(ReduceSumOp, emit(ExpOp, shifted), axes=(integer(op.axis),))
    return emit(SubOp, shifted, emit(LogOp, total))


@lowering(ops.LrnOp)
def lrn(op: ops.LrnOp, emit: Emitter) -> SSAValue:
    """
    Compute the mean of squares over a window of channels as an average pool along one axis.

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

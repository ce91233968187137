"""Lowerings of composite reductions to sums and elementwise operators."""

from __future__ import annotations

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, CastOp, ExpOp, IsInfOp, LogOp, SqrtOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering


def _sum(op: ops.Reduction, emit: Emitter, value: SSAValue) -> SSAValue:
    """The sum of `value` along the axes of `op`."""
    return emit(ops.ReduceSumOp, value, axes=op.axes, keepdims=op.keepdims)


def _real(value: SSAValue, emit: Emitter) -> SSAValue:
    """`value` in a type that has roots and logarithms: itself, or f64 for integers."""
    return value if is_float(element_of(value)) else emit(CastOp, value, to=f64)


def _typed(value: SSAValue, op: ops.Reduction, emit: Emitter) -> SSAValue:
    """`value` in the element type of `op`."""
    element = element_of(op.input)
    return value if element_of(value) == element else emit(CastOp, value, to=element)


@lowering(ops.ReduceL1Op)
def reduce_l1(op: ops.ReduceL1Op, emit: Emitter) -> SSAValue:
    """The sum of absolute values."""
    return _sum(op, emit, emit(AbsOp, op.input))


@lowering(ops.ReduceSumSquareOp)
def reduce_sum_square(op: ops.ReduceSumSquareOp, emit: Emitter) -> SSAValue:
    """The sum of squares."""
    return _sum(op, emit, emit(MulOp, op.input, op.input))


@lowering(ops.ReduceL2Op)
def reduce_l2(op: ops.ReduceL2Op, emit: Emitter) -> SSAValue:
    """The root of the sum of squares."""
    value = _real(op.input, emit)
    return _typed(emit(SqrtOp, _sum(op, emit, emit(MulOp, value, value))), op, emit)


@lowering(ops.ReduceLogSumOp)
def reduce_log_sum(op: ops.ReduceLogSumOp, emit: Emitter) -> SSAValue:
    """The logarithm of the sum."""
    return _typed(emit(LogOp, _sum(op, emit, _real(op.input, emit))), op, emit)


@lowering(ops.ReduceLogSumExpOp)
def reduce_log_sum_exp(op: ops.ReduceLogSumExpOp, emit: Emitter) -> SSAValue:
    """The maximum is taken out of the exponentials, unless it is infinite: inf - inf would be NaN."""
    value = _real(op.input, emit)
    peak = emit(ops.ReduceMaxOp, value, axes=op.axes, keepdims=True)
    shift = emit(WhereOp, emit(IsInfOp, peak), emit.splat(0.0, value), peak)
    logarithm = emit(LogOp, _sum(op, emit, emit(ExpOp, emit(SubOp, value, shift))))
    shift = emit(ReshapeOp, shift, shape=sizes_of(logarithm))
    return _typed(emit(AddOp, logarithm, shift), op, emit)

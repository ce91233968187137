"""Gradients of normalization by statistics."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, PowOp, SubOp
from glow_mlir.dialects.glow_high.normalization import (
    LrnOp,
)
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import normalize_axis, sizes_of
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.symbols import product_of


@gradient(LrnOp)
def lrn(op: LrnOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    With b = bias + alpha·(mean of squares): g·b^-beta - 2·alpha·beta·x·(mean of g·x·b^(-beta - 1)).

    The last mean is over the channels whose windows contain the channel.
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

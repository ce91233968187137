"""Gradients of products, of running sums and products, and of the k largest; edge cases follow PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.glow_high.elementwise_binary import AndOp, DivOp, EqualOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import ScatterElementsOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.differentiation.contributions import Contributions, expanded_to, reshaped, zeros_like
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


@gradient(ops.ReduceProdOp)
def product(op: ops.ReduceProdOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """g times the other factors; no quotient, because factors may be 0."""

    def contribution() -> SSAValue:
        sizes, axes = sizes_of(op.input), op.reduced_axes()
        g = reshaped(cotangent, ops.reduced_shape(sizes, axes, True), emit)
        return expanded_to(emit(MulOp, g, _others(op.input, axes, emit)) if axes else g, sizes, emit)

    return {"input": contribution}


def _others(x: SSAValue, axes: Sequence[int], emit: Emitter) -> SSAValue:
    """For each factor, the product of all others along axes."""
    *rest, axis = axes
    sides = (emit(ops.CumProdOp, x, axis=axis, exclusive=True, reverse=reverse) for reverse in (False, True))
    products = emit(MulOp, *sides)
    return emit(MulOp, products, _others(emit(ops.ReduceProdOp, x, axes=(axis,)), rest, emit)) if rest else products


def _running_sum(value: SSAValue, op: ops.CumSumOp | ops.CumProdOp, emit: Emitter) -> SSAValue:
    """For each element, the sum over all running totals that include it."""
    return emit(ops.CumSumOp, value, axis=op.axis, exclusive=op.exclusive, reverse=not flag(op.reverse))


@gradient(ops.CumSumOp)
def cum_sum(op: ops.CumSumOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The running sum of g in the other direction."""
    return {"input": lambda: _running_sum(cotangent, op, emit)}


@gradient(ops.CumProdOp)
def cum_prod(op: ops.CumProdOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    The running sum of g·y in the other direction, divided by x, up to the first 0 of a line.

    For that 0, it is the running sum of g times the products without it; later elements have no influence (as in
    `torch.cumprod`).
    """

    def contribution() -> SSAValue:
        x = op.input
        is_zero = emit(EqualOp, x, emit.splat(0, x))
        count = emit(ops.CumSumOp, emit(CastOp, is_zero, to=i32), axis=op.axis, reverse=op.reverse)
        is_first = emit(AndOp, is_zero, emit(EqualOp, count, emit.splat(1, count)))
        one, zero = emit.splat(1, x), emit.splat(0, x)
        others = emit(
            ops.CumProdOp,
            emit(WhereOp, is_first, one, x),
            axis=op.axis,
            exclusive=op.exclusive,
            reverse=op.reverse,
        )
        of_first = _running_sum(emit(MulOp, cotangent, others), op, emit)
        totals = _running_sum(emit(MulOp, cotangent, op.result), op, emit)
        of_others = emit(DivOp, totals, emit(WhereOp, is_zero, one, x))
        before = emit(WhereOp, emit(EqualOp, count, emit.splat(0, count)), of_others, zero)
        return emit(WhereOp, is_first, of_first, before)

    return {"input": contribution}


@gradient(ops.TopKOp)
def top_k(op: ops.TopKOp, cotangents: Sequence[SSAValue | None], emit: Emitter) -> Contributions:
    """The cotangent of each value at its position, 0 elsewhere; positions have no derivatives."""
    values, _ = cotangents

    def contribution() -> SSAValue | None:
        if values is None:
            return None
        zeros = zeros_like(op.input, emit)
        return emit(ScatterElementsOp, zeros, op.indices, values, axis=op.axis, reduction="add")

    return {"input": contribution}

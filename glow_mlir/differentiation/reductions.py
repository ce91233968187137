"""Gradients of reductions, of running sums and products, and of the k largest; edge cases are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.generic_form import is_half
from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.glow_high.elementwise_binary import AndOp, DivOp, EqualOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, ExpOp, SignOp
from glow_mlir.dialects.glow_high.indexing import ScatterElementsOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.differentiation.contributions import Contributions, expanded_to, reshaped, zeros_like
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.symbols import Size, product_of

Formula = Callable[[ops.Reduction, SSAValue, SSAValue, Emitter], SSAValue]
"""Gives what an operand contributes, or what broadcasts to it, from a result and its cotangent that have its rank."""


def _sum(op: ops.Reduction, _: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """g."""
    return g


def _mean(op: ops.Reduction, _: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """g over the number of elements, in f32 for half floats, which may not have room for it."""
    element, sizes = element_of(g), sizes_of(op.input)
    wide = emit(CastOp, g, to=f32) if is_half(element) else g
    count = _number(product_of([sizes[axis] for axis in op.reduced_axes()]), wide, emit)
    share = emit(DivOp, wide, count)
    return emit(CastOp, share, to=element) if is_half(element) else share


def _number(count: Size, like: SSAValue, emit: Emitter) -> SSAValue:
    """A size as a scalar float."""
    if isinstance(count, int):
        return emit.splat(count, like)
    told = emit(CastOp, emit(ShapeOp, sizes=(count,)), to=element_of(like))
    return reshaped(told, (), emit)


def _product(op: ops.Reduction, _: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """g times the other factors."""
    axes = op.reduced_axes()
    return emit(MulOp, g, _others(op.input, axes, emit)) if axes else g


def _others(x: SSAValue, axes: Sequence[int], emit: Emitter) -> SSAValue:
    """The product of all factors along axes but each one: no quotient, for some may be 0."""
    *rest, axis = axes
    sides = (emit(ops.CumProdOp, x, axis=axis, exclusive=True, reverse=reverse) for reverse in (False, True))
    beside = emit(MulOp, *sides)
    return emit(MulOp, beside, _others(emit(ops.ReduceProdOp, x, axes=(axis,)), rest, emit)) if rest else beside


def _extreme(op: ops.Reduction, y: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """Elements that are equal to the extreme share g alike (`torch.amax`)."""
    chosen = emit(CastOp, emit(EqualOp, op.input, y), to=element_of(g))
    count = emit(ops.ReduceSumOp, chosen, axes=op.axes)
    return emit(MulOp, chosen, emit(DivOp, g, count))


def _absolute_sum(op: ops.Reduction, _: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """g times the sign, 0 for 0."""
    return emit(MulOp, emit(SignOp, op.input), g)


def _norm(op: ops.Reduction, y: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """x·g over the norm, 0 where that is 0 (`torch.linalg.vector_norm`)."""
    is_zero = emit(EqualOp, y, emit.splat(0, y))
    share = emit(DivOp, g, emit(WhereOp, is_zero, emit.splat(1, y), y))
    return emit(MulOp, op.input, emit(WhereOp, is_zero, emit.splat(0, g), share))


def _square_sum(op: ops.Reduction, _: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """2·x·g."""
    return emit(MulOp, op.input, emit(MulOp, g, emit.splat(2, g)))


def _log_sum(op: ops.Reduction, _: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """g over the sum."""
    return emit(DivOp, g, emit(ops.ReduceSumOp, op.input, axes=op.axes))


def _log_sum_exp(op: ops.Reduction, y: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """g·exp(x - y)."""
    return emit(MulOp, emit(ExpOp, emit(SubOp, op.input, y)), g)


_FORMULAS: dict[type[ops.Reduction], Formula] = {
    ops.ReduceSumOp: _sum,
    ops.ReduceMeanOp: _mean,
    ops.ReduceProdOp: _product,
    ops.ReduceMaxOp: _extreme,
    ops.ReduceMinOp: _extreme,
    ops.ReduceL1Op: _absolute_sum,
    ops.ReduceL2Op: _norm,
    ops.ReduceSumSquareOp: _square_sum,
    ops.ReduceLogSumOp: _log_sum,
    ops.ReduceLogSumExpOp: _log_sum_exp,
}


def _reduction(formula: Formula) -> Callable[[ops.Reduction, SSAValue, Emitter], Contributions]:
    """The gradient function of a reduction: the formula on results that keep the axes, in the sizes of the operand."""

    def contributions(op: ops.Reduction, cotangent: SSAValue, emit: Emitter) -> Contributions:
        def contribution() -> SSAValue:
            sizes = sizes_of(op.input)
            kept = ops.reduced_shape(sizes, op.reduced_axes(), True)
            y, g = (reshaped(value, kept, emit) for value in (op.result, cotangent))
            return expanded_to(formula(op, y, g, emit), sizes, emit)

        return {"input": contribution}

    return contributions


for _operator, _formula in _FORMULAS.items():
    gradient(_operator)(_reduction(_formula))


def _running_sum(value: SSAValue, op: ops.CumSumOp | ops.CumProdOp, emit: Emitter) -> SSAValue:
    """The sum of all elements whose running total has each one among its parts."""
    return emit(ops.CumSumOp, value, axis=op.axis, exclusive=op.exclusive, reverse=not flag(op.reverse))


@gradient(ops.CumSumOp)
def cum_sum(op: ops.CumSumOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The running sum of g in the other direction."""
    return {"input": lambda: _running_sum(cotangent, op, emit)}


@gradient(ops.CumProdOp)
def cum_prod(op: ops.CumProdOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    The running sum of g·y in the other direction, over x; so up to the first 0 of a line.

    For that one it is the running sum of g times the products without it, and what comes behind it has no influence
    (as in `torch.cumprod`).
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
    """The cotangent of each value at its place, 0 elsewhere; places have no derivatives."""
    values, _ = cotangents

    def contribution() -> SSAValue | None:
        if values is None:
            return None
        zeros = zeros_like(op.input, emit)
        return emit(ScatterElementsOp, zeros, op.indices, values, axis=op.axis, reduction="add")

    return {"input": contribution}

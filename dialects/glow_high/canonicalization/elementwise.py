"""
Rewrites of elementwise operators: neutral operands, repetition without effect, and redundant broadcasts.

They keep all results except for two properties of floats: the sign of a zero to which zero is added, and NaN payloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.element_types import is_bool, is_float
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high.canonicalization import casts, clips, quantization
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.data_movement import ExpandOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.quantization import StorageCastOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import broadcast, element_of, shape_of, sizes_of

NEUTRAL: Mapping[type[Elementwise], tuple[tuple[int, int], ...]] = {
    binary.AddOp: ((1, 0), (0, 0)),
    binary.AndOp: ((1, 1), (0, 1)),
    binary.BitShiftOp: ((1, 0),),
    binary.BitwiseOrOp: ((1, 0), (0, 0)),
    binary.BitwiseXorOp: ((1, 0), (0, 0)),
    binary.DivOp: ((1, 1),),
    binary.MulOp: ((1, 1), (0, 1)),
    binary.OrOp: ((1, 0), (0, 0)),
    binary.PowOp: ((1, 1),),
    binary.SubOp: ((1, 0),),
    binary.XorOp: ((1, 0), (0, 0)),
}
"""Operator → (position of an operand, the neutral number at that position)."""

ABSORBING: Mapping[type[Elementwise], int] = {
    binary.AndOp: 0,
    binary.BitwiseAndOp: 0,
    binary.MulOp: 0,
    binary.OrOp: 1,
}
"""Operator → absorbing number: the result if any operand is that number; not for floats because of NaN."""

CANCELLING: tuple[type[Elementwise], ...] = (binary.BitwiseXorOp, binary.SubOp, binary.XorOp)
"""Operators that give 0 if both operands are the same; not for floats because of infinities and NaN."""

SELECTING: tuple[type[Elementwise], ...] = (
    binary.AndOp,
    binary.BitwiseAndOp,
    binary.BitwiseOrOp,
    binary.MaxOp,
    binary.MinOp,
    binary.OrOp,
)
"""Operators that return the operand if both operands are the same."""

OPPOSITE: Mapping[type[Elementwise], type[Elementwise]] = {binary.AddOp: binary.SubOp, binary.SubOp: binary.AddOp}
"""Operator → the operator it becomes when its second operand is negated."""

CONVERTING: tuple[type[Elementwise], ...] = (math.CastOp, StorageCastOp)
"""Operators that change nothing but the element type."""

INVOLUTIONS: tuple[type[Elementwise], ...] = (math.BitwiseNotOp, math.NegOp, math.NotOp)
"""Operators that undo themselves."""

INTEGRAL = tuple(operator for operator in math.FLOAT_FUNCTIONS.values() if operator.FUNCTION.is_step)
"""Operators that return whole numbers and leave whole numbers unchanged."""

IDEMPOTENT: tuple[type[Elementwise], ...] = (math.AbsOp, math.SignOp)
"""Operators that change nothing when applied again."""


def fold_elementwise(op: Elementwise) -> Sequence[SSAValue] | None:
    """The operand that the result always equals, if there is one."""
    candidate = _unchanged_operand(op)
    if candidate is None or candidate.type != op.result.type:
        return None
    return (candidate,)


def _unchanged_operand(op: Elementwise) -> SSAValue | None:
    """The operand that the result equals, except perhaps for its shape."""
    kind = type(op)
    for position, neutral in NEUTRAL.get(kind, ()):
        if _is(op.operands[position], neutral):
            return op.operands[1 - position]
    first = op.operands[0]
    inner = first.owner
    if isinstance(op, binary.WhereOp):
        return _chosen_branch(op)
    if kind in SELECTING and first is op.operands[1]:
        return first
    if kind in CONVERTING and element_of(op.result) == element_of(first):
        return first
    if kind in INVOLUTIONS and isinstance(inner, Elementwise) and type(inner) is kind:
        return inner.operands[0]
    if (kind in IDEMPOTENT and type(inner) is kind) or (kind in INTEGRAL and type(inner) in INTEGRAL):
        return first
    return None


def _chosen_branch(op: binary.WhereOp) -> SSAValue | None:
    """The branch that is taken everywhere, if that is known."""
    condition = splat_number(op.condition)
    if condition is not None:
        return op.yes if condition else op.no
    return op.yes if op.yes is op.no else None


def _is(value: SSAValue, neutral: int) -> bool:
    """Whether all elements of `value` are known to be that number."""
    known = splat_number(value)
    # `true` is 1 as a number, but -1 where a signless bit is read as signed.
    return known == neutral or (known == -1 and neutral == 1 and is_bool(element_of(value)))


class DropExpand(RewritePattern):
    """Remove the expand of an operand that the operator broadcasts anyway."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        for position, operand in enumerate(op.operands):
            if not isinstance(operand.owner, ExpandOp):
                continue
            sizes = [sizes_of(other) for other in op.operands]
            sizes[position] = sizes_of(operand.owner.input)
            if broadcast(*sizes) == sizes_of(op.results[0]):
                op.operands[position] = operand.owner.input
                rewriter.notify_op_modified(op)


class FoldToSplat(RewritePattern):
    """Fold an absorbing operand, or two operands that cancel, to a splat; not for floats."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(op, Elementwise)
        result = op.result
        absorbing = ABSORBING.get(type(op))
        if is_float(element_of(result)):
            return
        if absorbing is not None and any(_is(operand, absorbing) for operand in op.operands):
            value = absorbing
        elif type(op) in CANCELLING and op.operands[0] is op.operands[1]:
            value = 0
        else:
            return
        attribute = IntegerAttr(value, cast("IntegerType", element_of(result)))
        rewriter.replace(op, SplatOp.make(value=attribute, shape=shape_of(result), location=op.location))


class NegatedOperand(RewritePattern):
    """Replace the addition of a negated operand by a subtraction, and vice versa."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(op, binary.AddOp | binary.SubOp)
        left, right = op.left, op.right
        if isinstance(op, binary.AddOp) and isinstance(left.owner, math.NegOp):
            left, right = right, left
        if isinstance(right.owner, math.NegOp):
            rewriter.replace(op, OPPOSITE[type(op)].make(left, right.owner.input, location=op.location))


class TimesMinusOne(RewritePattern):
    """Replace a product with -1 by a negation."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: binary.MulOp, rewriter: PatternRewriter, /) -> None:
        for position, operand in enumerate(op.operands):
            other = op.operands[1 - position]
            if splat_number(operand) == -1 and other.type == op.result.type:
                rewriter.replace(op, math.NegOp.make(other, location=op.location))
                return


DROP_EXPAND, FOLD_TO_SPLAT, NEGATED_OPERAND = DropExpand(), FoldToSplat(), NegatedOperand()

PATTERNS: Mapping[type[Elementwise], tuple[RewritePattern, ...]] = {
    binary.AddOp: (NEGATED_OPERAND,),
    binary.AndOp: (FOLD_TO_SPLAT,),
    binary.BitwiseAndOp: (FOLD_TO_SPLAT,),
    binary.BitwiseXorOp: (FOLD_TO_SPLAT,),
    **clips.PATTERNS,
    **casts.PATTERNS,
    **quantization.PATTERNS,
    binary.MulOp: (FOLD_TO_SPLAT, TimesMinusOne()),
    binary.OrOp: (FOLD_TO_SPLAT,),
    binary.SubOp: (FOLD_TO_SPLAT, NEGATED_OPERAND),
    binary.XorOp: (FOLD_TO_SPLAT,),
}
"""Operator → its own patterns, in addition to those of all elementwise operators."""


def patterns_of(operator: type[Elementwise]) -> tuple[RewritePattern, ...]:
    """The patterns of an elementwise operator."""
    return (DROP_EXPAND, *PATTERNS.get(operator, ()))

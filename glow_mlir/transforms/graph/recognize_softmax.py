"""`recognize-softmax`: recognize softmax and its logarithm written as arithmetic."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_math import ExpOp, LogOp
from glow_mlir.dialects.glow_high.normalization import LogSoftmaxOp, SoftmaxOp
from glow_mlir.dialects.glow_high.reductions import ReduceLogSumExpOp, ReduceMaxOp, ReduceSumOp
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import PatternPass, Walk
from glow_mlir.rewriting.formulas import Apply, Formula, Reduced, Shared, Variable
from glow_mlir.rewriting.matching import Match
from glow_mlir.rewriting.recognition import Recognition
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class RecognizeSoftmaxPass(PatternPass):
    """
    Replace exponentials over their sum, with or without subtraction of the maximum, by a softmax (Glow's
    FoldExpSumDivIntoSoftmax), and its logarithm by a log-softmax.

    The reductions must run over the same single axis, and keep it.
    """

    name = "recognize-softmax"

    def walks(self) -> tuple[Walk, ...]:
        return (WALK,)


@dataclass(frozen=True)
class AlongOneAxis:
    """Builds an operator of `x` along the axis of the reductions; `None` if they have several."""

    operator: type[HighOp]

    def __call__(self, match: Match, emit: Emitter) -> SSAValue | None:
        if match.axes is None or len(match.axes) != 1:
            return None
        return emit(self.operator, match.values["x"], axis=match.axes[0])


def _logarithm_of_softmax(match: Match, emit: Emitter) -> SSAValue:
    softmax = match.ops[-1]
    return emit(LogSoftmaxOp, softmax.operands[0], axis=softmax.properties["axis"])


def exp(x: Formula) -> Formula:
    """The exponential of each element."""
    return Apply(ExpOp, (x,))


def log(x: Formula) -> Formula:
    """The logarithm of each element."""
    return Apply(LogOp, (x,))


def total(x: Formula) -> Formula:
    """The sum along the axes."""
    return Reduced(ReduceSumOp, x)


X = Variable("x")
PEAK = Shared("peak", Reduced(ReduceMaxOp, X))
SHIFTED = Shared("shifted", X - PEAK)
POWERS, SHIFTED_POWERS = Shared("powers", exp(X)), Shared("powers", exp(X - PEAK))

PATTERNS: tuple[Recognition, ...] = (
    Recognition(
        "recognize-softmax",
        (SHIFTED_POWERS / total(SHIFTED_POWERS), POWERS / total(POWERS)),
        AlongOneAxis(SoftmaxOp),
    ),
    Recognition("recognize-log-of-softmax", (log(Apply(SoftmaxOp, (X,))),), _logarithm_of_softmax),
    Recognition(
        "recognize-log-softmax",
        (
            SHIFTED - log(total(exp(SHIFTED))),
            X - log(total(exp(X - PEAK))) - PEAK,
            X - log(total(exp(X))),
            X - Reduced(ReduceLogSumExpOp, X),
        ),
        AlongOneAxis(LogSoftmaxOp),
    ),
)
"""Formulas of softmax and log-softmax."""

WALK = Walk(PATTERNS)

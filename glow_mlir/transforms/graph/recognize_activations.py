"""`recognize-activations`: recognize activation functions written as arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high import activations as ops
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import PatternPass, Walk
from glow_mlir.rewriting.formulas import Apply, Constant, Formula, Number, Variable
from glow_mlir.rewriting.matching import Match
from glow_mlir.rewriting.recognition import Recognition
from glow_mlir.support.dataclass import dataclass

Properties = Mapping[str, AttributeValue]


@dataclass(frozen=True)
class RecognizeActivationsPass(PatternPass):
    """
    Replace arithmetic that is a sigmoid, swish, hard sigmoid, hard swish, softsign, mish, GELU (by erf or tanh), ELU,
    leaky ReLU or PReLU by that operator (Glow's FoldLeakyRelu, and the patterns of its importers).

    Intermediate values with other readers are kept, with their operands. `log(1 + exp(x))` is kept too: softplus, which
    never overflows, takes a third longer.
    """

    name = "recognize-activations"

    def walks(self) -> tuple[Walk, ...]:
        return (WALK,)


@dataclass(frozen=True)
class Function:
    """Builds an activation of `x` with properties computed from the numbers of the match; `None` to reject it."""

    operator: type[HighOp]
    properties: Callable[[Mapping[str, float]], Properties | None] = lambda numbers: numbers

    def __call__(self, match: Match, emit: Emitter) -> SSAValue | None:
        x, properties = match.values["x"], self.properties(match.numbers)
        return None if properties is None else emit(self.operator, x, **properties)


def _apply(operator: type[HighOp]) -> Callable[..., Formula]:
    def applied(*operands: Formula | float) -> Formula:
        formulas = (item if isinstance(item, Formula) else Constant(item) for item in operands)
        return Apply(operator, tuple(formulas))

    return applied


def _flatter(numbers: Mapping[str, float]) -> Properties | None:
    """max(x, alpha·x) is a leaky ReLU only for 0 < alpha ≤ 1; 0·inf is not a number."""
    return numbers if 0 < numbers["alpha"] <= 1 else None


def _opposite(numbers: Mapping[str, float]) -> Properties:
    """Negate alpha: the formula has the opposite sign of the operator."""
    return {"alpha": -numbers["alpha"]}


def _prelu(match: Match, emit: Emitter) -> SSAValue | None:
    slope = emit.known(match.values["slope"])
    if slope is None or not np.isfinite(slope).all():  # An infinite slope makes 0·inf behind the ReLU a NaN.
        return None
    return emit(ops.PReluOp, match.values["x"], emit.constant(-slope, "slope"))


abs_, clip, erf, exp, max_, relu, sigmoid, softplus, tanh, where, greater, at_least, less = map(
    _apply,
    (
        math.AbsOp,
        binary.ClipOp,
        math.ErfOp,
        math.ExpOp,
        binary.MaxOp,
        ops.ReluOp,
        ops.SigmoidOp,
        ops.SoftplusOp,
        ops.TanhOp,
        binary.WhereOp,
        binary.GreaterOp,
        binary.GreaterOrEqualOp,
        binary.LessOp,
    ),
)
X, SLOPE, ALPHA, BETA = Variable("x"), Variable("slope"), Number("alpha"), Number("beta")
SIXTH = 1 / 6


def _branches(below: Formula) -> tuple[Formula, ...]:
    """Formulas that select X above zero, and `below` otherwise."""
    return where(greater(X, 0), X, below), where(at_least(X, 0), X, below), where(less(X, 0), below, X)


PATTERNS: tuple[Recognition, ...] = (
    Recognition("recognize-sigmoid", (1 / (1 + exp(-1 * X)),), Function(ops.SigmoidOp)),
    Recognition("recognize-swish", (X / (1 + exp(ALPHA * X)),), Function(ops.SwishOp, _opposite)),
    Recognition("recognize-swish-of-sigmoid", (X * sigmoid(ALPHA * X),), Function(ops.SwishOp)),
    Recognition("recognize-mish", (X * tanh(softplus(X)),), Function(ops.MishOp)),
    Recognition("recognize-softsign", (X / (1 + abs_(X)),), Function(ops.SoftsignOp)),
    Recognition("recognize-gelu", (0.5 * X * (1 + erf(sqrt(0.5) * X)),), Function(ops.GeluOp)),
    Recognition(
        "recognize-tanh-gelu",
        (
            0.5 * X * (1 + tanh(sqrt(2 / pi) * (X + 0.044715 * X**3))),
            0.5 * X * (1 + tanh(sqrt(2 / pi) * X * (1 + 0.044715 * X**2))),
        ),
        Function(ops.GeluOp, lambda _: {"approximate": "tanh"}),
    ),
    Recognition(
        "recognize-hard-swish",
        (X * clip(3 + X, 0, 6) / 6, X * Apply(ops.HardSigmoidOp, (X,), (("alpha", SIXTH), ("beta", 0.5)))),
        Function(ops.HardSwishOp),
    ),
    Recognition(
        "recognize-relu6-as-hard-sigmoid",
        (clip(3 + X, 0, 6) / 6,),
        Function(ops.HardSigmoidOp, lambda _: {"alpha": SIXTH, "beta": 0.5}),
    ),
    Recognition("recognize-hard-sigmoid", (clip(BETA + ALPHA * X, 0, 1),), Function(ops.HardSigmoidOp)),
    Recognition("recognize-maximum-as-leaky-relu", (max_(X, ALPHA * X),), Function(ops.LeakyReluOp, _flatter)),
    Recognition("recognize-branches-as-leaky-relu", _branches(ALPHA * X), Function(ops.LeakyReluOp)),
    Recognition("recognize-elu", _branches(ALPHA * (exp(X) - 1)), Function(ops.EluOp)),
    Recognition("recognize-sum-as-leaky-relu", (relu(X) + ALPHA * relu(-1 * X),), Function(ops.LeakyReluOp, _opposite)),
    Recognition("recognize-prelu", (relu(X) + SLOPE * relu(-1 * X),), _prelu),
)
"""
Formulas of activation functions, to which the spellings of exporters normalize; the hard sigmoid of a hard swish is
recognised before its product.
"""

WALK = Walk(PATTERNS)

"""Derivatives of single operations on scalars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from glow_mlir.dialects import expressions as ex
from glow_mlir.dialects.expressions import Number, Tensor
from glow_mlir.dialects.scalar_builder import FUNCTIONS
from glow_mlir.dialects.scalar_function import ScalarFunction
from glow_mlir.differentiation.derivative_values import Value, choice, times

Part = Tensor | Number
Partials = tuple[Value, ...]
"""The derivative of an operation with respect to each argument."""
Rule = Callable[..., Partials]
"""Computes the derivatives of an operation from its result and its arguments."""


def _extreme(beyond: str) -> Rule:
    """
    The rule for the larger or smaller of two values, selected by a comparison. Equal values share the derivative; a
    value equal to a constant gets all of it, as in `torch.maximum` and `torch.relu`.
    """

    def rule(_: Tensor, x: Part, y: Part) -> Partials:
        if not isinstance(y, Tensor):
            return choice(ex.compare(beyond, x, y), 1, 0), 0
        if not isinstance(x, Tensor):
            return 0, choice(ex.compare(beyond, y, x), 1, 0)
        tied = choice(ex.equal(x, y), 0.5, 0)
        return choice(ex.compare(beyond, x, y), 1, tied), choice(ex.compare(beyond, y, x), 1, tied)

    return rule


def _power(result: Tensor, x: Part, y: Part) -> Partials:
    """The rule for x to the power y: with respect to y, it is 0 where x is 0 and y is not negative, as in the limit."""
    if not isinstance(y, Tensor):
        assert isinstance(x, Tensor)
        by_base: Value = times(y, x if y == 2 else 1 if y == 1 else ex.power(x, y - 1)) if y else 0
        return by_base, 0
    by_base = choice(ex.equal(y, 0), 0, times(y, ex.binary("power", x, y - 1)))
    if not isinstance(x, Tensor):
        return 0, times(result, math.log(x)) if x > 0 else choice(y >= 0, 0, math.nan)
    by_exponent = choice(ex.equal(x, 0) & (y >= 0), 0, times(result, ex.log(x)))
    return by_base, by_exponent


def _sum(_: Tensor, *arguments: Part) -> Partials:
    return (1,) * len(arguments)


def _difference(_result: Tensor, _x: Part, _y: Part) -> Partials:
    return 1, -1


def _product(_: Tensor, x: Part, y: Part) -> Partials:
    return y, x


def _quotient(result: Tensor, _: Part, y: Part) -> Partials:
    return 1 / y, -(result / y)


def _remainder(_: Tensor, x: Part, y: Part) -> Partials:
    return 1, -ex.trunc(ex.binary("div", x, y))


def _fused(_: Tensor, x: Part, y: Part, _z: Part) -> Partials:
    return y, x, 1


def _negative(_result: Tensor, _x: Part) -> Partials:
    return (-1,)


def _magnitude(_: Tensor, x: Tensor) -> Partials:
    return (choice(x > 0, 1, choice(x < 0, -1, 0)),)


def _of_function(function: ScalarFunction) -> Rule:
    """The rule of a function of one float, from its derivative."""

    def rule(result: Tensor, x: Tensor) -> Partials:
        assert function.derivative is not None
        return (function.derivative(x, result),)

    return rule


PARTIALS: Mapping[str, Rule] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "rem": _remainder,
    "max": _extreme("gt"),
    "min": _extreme("lt"),
    "power": _power,
    "fma": _fused,
    **{word: _of_function(function) for word, function in FUNCTIONS.items()},
    "abs": _magnitude,
    "negate": _negative,
}
"""
Word of an operation on floats → its derivatives.

Conversions, `select` and folds are handled elsewhere, because their derivatives depend on more than elements; other
words do not compute floats.
"""

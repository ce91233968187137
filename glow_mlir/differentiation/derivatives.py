"""Derivatives of single operations on scalars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from glow_mlir.dialects import expressions as ex
from glow_mlir.dialects.expressions import Number, Tensor
from glow_mlir.differentiation.derivative_values import Value, choice, times

Part = Tensor | Number
Partials = tuple[Value, ...]
"""The derivative of an operation with regard to each of its arguments."""
Rule = Callable[..., Partials]
"""Gives the derivatives of an operation from its result and its arguments."""


def _extreme(beyond: str) -> Rule:
    """
    Of the larger or the smaller of two, whose comparison is a word: equal values share it, a number takes what it is
    equal to, as in `torch.maximum` and `torch.relu`.
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
    """Of x to the power y: by y, it is 0 where x is 0 and y is not below it, as in the limit."""
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


def _sign(x: Tensor) -> Value:
    return choice(x > 0, 1, choice(x < 0, -1, 0))


def _of_one(partial: Callable[[Tensor, Tensor], Value]) -> Rule:
    """The rule of a function of one argument, from its derivative."""

    def rule(result: Tensor, x: Tensor) -> Partials:
        return (partial(result, x),)

    return rule


_OF_ONE: dict[str, Callable[[Tensor, Tensor], Value]] = {
    "abs": lambda y, x: _sign(x),
    "acos": lambda y, x: -1 / ex.sqrt(1 - x * x),
    "acosh": lambda y, x: 1 / ex.sqrt(x * x - 1),
    "asin": lambda y, x: 1 / ex.sqrt(1 - x * x),
    "asinh": lambda y, x: 1 / ex.sqrt(x * x + 1),
    "atan": lambda y, x: 1 / (x * x + 1),
    "atanh": lambda y, x: 1 / (1 - x * x),
    "ceil": lambda y, x: 0,
    "cos": lambda y, x: -ex.sin(x),
    "cosh": lambda y, x: ex.sinh(x),
    "erf": lambda y, x: ex.exp(-(x * x)) * (2 / math.sqrt(math.pi)),
    "exp": lambda y, x: y,
    "expm1": lambda y, x: y + 1,
    "floor": lambda y, x: 0,
    "log": lambda y, x: 1 / x,
    "log1p": lambda y, x: 1 / (x + 1),
    "negate": lambda y, x: -1,
    "round_even": lambda y, x: 0,
    "sin": lambda y, x: ex.cos(x),
    "sinh": lambda y, x: ex.cosh(x),
    "sqrt": lambda y, x: 0.5 / y,
    "tan": lambda y, x: y * y + 1,
    "tanh": lambda y, x: 1 - y * y,
    "trunc": lambda y, x: 0,
}

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
    **{word: _of_one(partial) for word, partial in _OF_ONE.items()},
}
"""
Word of an operation on floats → its derivatives.

Those of conversions, of `select` and of folds are no functions of elements alone; other words compute no floats.
"""

"""
The exponential and functions derived from it: exp, exp2, expm1, tanh, sinh, cosh.

All reduce to `2^n * (1 + r + r^2 P(r))` with `|r| <= ln(2) / 2`. P is a minimax fit (Remez exchange in 50 digits,
weighted so that expm1 has the same relative error over the whole interval: 2^-26.2 for f32, 2^-55.6 for f64),
derived for this project. Errors measured over the whole range are in `tests/codegen/test_scalar_math.py`.
"""

from __future__ import annotations

import math

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.math.float_format import (
    Integer,
    clamp_keeping_nan,
    inverse_power_of_two,
    keep_tiny,
    nearest_integer,
    polynomial_by_pairs,
    power_of_two,
    scale,
)

P = {
    32: (0.5, 0.16666543, 0.04166628, 0.008366611, 0.0013946497),
    64: (
        *(0.5000000000000006, 0.16666666666666685, 0.04166666666657332, 0.008333333333314487),
        *(0.0013888888932484765, 0.00019841269903262082, 2.4801504311178137e-05, 2.755722774275984e-06),
        *(2.7626382657263797e-07, 2.51145412797036e-08),
    ),
}
LN2 = {32: (0.693115234375, 3.1946184945309415e-05), 64: (0.6931471806019545, -4.2009150726810846e-11)}
"""ln(2) in two parts; the first has so few bits that its product with any exponent is exact."""

EXP_RANGE = {32: (-104.0, 89.0), 64: (-746.0, 710.0)}
"""Below the first number exp is 0; from the second on it is infinite."""

SMALLEST_NORMAL = {32: -87.33, 64: -708.39}
"""From here on exp is a normal number."""

EXP2_RANGE = {32: (-151.0, 129.0), 64: (-1076.0, 1025.0)}
TANH_LIMIT = {32: 10.0, 64: 20.0}
"""From here on tanh rounds to 1."""

OVERFLOW = {32: 88.0, 64: 709.0}
"""Up to here exp is finite."""


def reduce_by_ln2(b: Builder, x: Value) -> tuple[Integer, Value]:
    """
    Return an integer n, and r, with `x = n * ln(2) + r` and r in `+-ln(2) / 2`.

    `x` is within the range of exp, or NaN.
    """
    high, low = LN2[x.info.bits]
    n = nearest_integer(b, x, math.log2(math.e))
    return n, b.fma(n.number, -low, b.fma(n.number, -high, x))


def expm1_reduced(b: Builder, r: Value) -> Value:
    """Return `exp(r) - 1` for r in `+-ln(2) / 2`."""
    square = r * r
    return b.fma(square, polynomial_by_pairs(b, r, square, P[r.info.bits]), r)


def exp(b: Builder, x: Value) -> Value:
    """Return e to the power x."""
    if x.lanes > 1 or kernel_costs(b.target).branched_operations > _EDGE_OPERATIONS:
        return _exp_of_any(b, x)
    is_usual = b.fabs(x) < -SMALLEST_NORMAL[x.info.bits]
    return b.either(is_usual, lambda: [exp_small(b, x)], lambda: [_exp_by_call(b, x)])[0]


_EDGE_OPERATIONS = 16
"""The operations that bring numbers into the range of exp, and scale results that are not normal."""


def _exp_by_call(b: Builder, x: Value) -> Value:
    """The exponential as a call of a function, which is rarely executed."""

    def build(name: str) -> None:
        with define_function(b.module, name, [x.type], x.type, internal=True, inline=False, cold=True) as (inner, (y,)):
            inner.give_back(_exp_of_any(inner, y))

    result = b.call(b.module.shared((_exp_by_call, x.type), build, f"exp.{x.type}"), [x])
    assert result is not None
    return result


def _exp_of_any(b: Builder, x: Value) -> Value:
    n, r = reduce_by_ln2(b, clamp_keeping_nan(b, x, *EXP_RANGE[x.info.bits]))
    return scale(b, expm1_reduced(b, r) + 1.0, n)


def exp_small(b: Builder, x: Value) -> Value:
    """Return e to the power x if the result is certain to be a normal number: one multiplication less."""
    n, r = reduce_by_ln2(b, x)
    return (expm1_reduced(b, r) + 1.0) * power_of_two(b, n.shifted)


def exp_falling(b: Builder, x: Value) -> Value:
    """Return e to the power x for `x` not above 0, and 0 where that is not a normal number, as softmax needs it."""
    # At this bound, and a little above it, the power of two has an exponent of 0, and so is 0 itself.
    return exp_small(b, b.max(FALLING_LIMIT[x.info.bits], x))


FALLING_LIMIT = {32: -88.03, 64: -709.09}
"""A little below the logarithm of half the smallest normal number."""


def exp2(b: Builder, x: Value) -> Value:
    """Return two to the power x."""
    x = clamp_keeping_nan(b, x, *EXP2_RANGE[x.info.bits])
    n = nearest_integer(b, x)
    return scale(b, expm1_reduced(b, (x - n.number) * math.log(2)) + 1.0, n)


def expm1_of_normal(b: Builder, x: Value) -> Value:
    """Return `exp(x) - 1`, with +0 for -0 and without the last bit of denormal numbers."""
    low, high = -40.0, EXP_RANGE[x.info.bits][1]
    n, r = reduce_by_ln2(b, clamp_keeping_nan(b, x, low, high))
    # Half the power of two stays finite where the power itself does not; for n = 0 the sum is exp(r) - 1 exactly.
    half = power_of_two(b, n.shifted - 1.0)
    return (b.fma(half, expm1_reduced(b, r), half - 0.5)) * 2.0


def expm1(b: Builder, x: Value) -> Value:
    """Return `exp(x) - 1`, accurate near zero."""
    return keep_tiny(b, x, expm1_of_normal(b, x))


def tanh(b: Builder, x: Value) -> Value:
    """Return the hyperbolic tangent; never beyond 1, and x itself where that is denormal."""
    magnitude = b.min(TANH_LIMIT[x.info.bits], b.fabs(x))
    n, r = reduce_by_ln2(b, magnitude + magnitude)
    # With t = exp(r) - 1 it is (2^n (t + 1) - 1) / (2^n (t + 1) + 1), both sides divided by 2^n.
    t, power = expm1_reduced(b, r), inverse_power_of_two(b, n.shifted)
    return b.copysign((t + (1.0 - power)) / (t + (power + 1.0)), x)


def _half_exp(b: Builder, magnitude: Value) -> Value:
    """Return `exp(x) / 2` where exp itself may overflow."""
    root = exp(b, magnitude * 0.5)
    return (root * 0.5) * root


def sinh(b: Builder, x: Value) -> Value:
    """Return the hyperbolic sine."""
    magnitude = b.fabs(x)
    t = expm1_of_normal(b, magnitude)
    usual = (t + t / (t + 1.0)) * 0.5
    result = b.select(magnitude > OVERFLOW[x.info.bits], _half_exp(b, magnitude), usual)
    return keep_tiny(b, x, b.copysign(result, x))


def cosh(b: Builder, x: Value) -> Value:
    """Return the hyperbolic cosine."""
    magnitude = b.fabs(x)
    e = exp(b, magnitude)
    usual = e * 0.5 + 0.5 / e
    return b.select(magnitude > OVERFLOW[x.info.bits], _half_exp(b, magnitude), usual)

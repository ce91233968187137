"""
The error function and the exact remainder.

The logarithm of the complementary error function is `a (1 + P(a))` for `a = -|x|`, and erf 1 less its exponential. P is
a minimax fit (Remez exchange in 60 digits, weighted for the relative error of erf: 2^-27.9 for f32, 2^-60.3 for f64),
derived for this project.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.exponentials import expm1_reduced, reduce_by_ln2
from glow_mlir.codegen.math.float_format import polynomial, power_of_two
from glow_mlir.codegen.math.pairs import product_and_error

P = {
    32: (
        *(0.12837917, -0.6366194, 0.10277783, 0.019153075, -0.00016036064),
        *(-0.0016669804, -0.0006328063, -0.00011763165, -9.255103e-06),
    ),
    64: (
        *(0.12837916709551256, -0.6366197723675816, 0.10277260330192355, 0.01912844700867219),
        *(-0.00020919464425570608, -0.0016962059533177061, -0.0005901230954583075, -2.586876212183662e-05),
        *(6.452080138698986e-05, 2.9788411759896565e-05, 3.5179612531045734e-06, -2.6854758407018985e-06),
        *(-1.5805054779201984e-06, -1.972384001135793e-07, 2.342440067808858e-07, 1.966137547433587e-07),
        *(9.085231656680388e-08, 3.026080965221962e-08, 7.763886446464412e-09, 1.563122460214063e-09),
        *(2.4635063538959764e-10, 2.9869613201588e-11, 2.693739905630272e-12, 1.7023660827851942e-13),
        *(6.726355703728633e-15, 1.2499018907438956e-16),
    ),
}
LIMIT = {32: 4.0, 64: 6.0}
"""The magnitude from which on erf rounds to 1, and where the fit ends."""

HUGE = {32: 2.0**120, 64: 2.0**1000}
"""The largest magnitude for which nothing that `remf` computes overflows."""

STEPS = {32: (180, 90, 0), 64: (1500, 750, 0)}
"""
Powers of two, multiples of the divisor by which are subtracted first: a quotient by the last is in the range of floats.
"""


def erf(b: Builder, x: Value) -> Value:
    """Return the error function."""
    bits = x.info.bits
    a = b.max(-LIMIT[bits], -b.fabs(x))
    n, r = reduce_by_ln2(b, b.fma(a, polynomial(b, a, P[bits]), a))
    # With n and t = exp(r) - 1 it is 1 - 2^n (t + 1); 1 - 2^n is exact, or its error does not matter.
    power = power_of_two(b, n.shifted)
    return b.copysign(b.fma(-power, expm1_reduced(b, r), 1.0 - power), x)


def remf(b: Builder, x: Value, y: Value) -> Value:
    """
    Return `x - y * trunc(x / y)` exactly, with the sign of x: C's `fmod`, the dialect's `arith.remf`.

    NaN for an infinite x or a zero y. Each iteration subtracts a multiple of y that has as many digits as a float
    holds, so that one iteration is enough unless x / y exceeds 2^53, or 2^24 for an f32 without f64.
    """
    bits = x.info.bits
    if bits == 32 and b.target.doubles:
        return b.cast(_remainder(b, b.cast(x, f64), b.cast(y, f64), (0,)), f32)
    # Half of a dividend so large that a rounded multiple of the divisor might be infinite.
    dividend, divisor = b.fabs(x), b.fabs(y)
    huge = dividend > HUGE[bits]
    half = _remainder(b, b.select(huge, x * 0.5, x), y, STEPS[bits])
    rest = b.fabs(half)
    beyond = rest - (divisor - rest)
    return b.select(huge, b.copysign(b.select(beyond < 0.0, rest + rest, beyond), x), half)


def _remainder(b: Builder, x: Value, y: Value, powers: Sequence[int]) -> Value:
    """
    Return the result of `remf` for numbers up to `HUGE`.

    A quotient may exceed the range of floats, so multiples of the divisor by two to the `powers` are subtracted first.
    An infinite multiple is not subtracted.
    """
    divisor, rest = b.fabs(y), b.fabs(x)
    for power in powers:
        rest = _reduce(b, rest, divisor * 2.0 ** (power // 2) * 2.0 ** (power // 2))
    rest = b.select(rest < 0.0, rest + divisor, rest)
    valid = (b.fabs(x) < math.inf) & (divisor > 0.0)
    return b.select(valid, b.copysign(rest, x), b.constant(math.nan, x.type))


def _reduce(b: Builder, start: Value, divisor: Value) -> Value:
    """Return `start` less a multiple of the divisor, below it in magnitude; of either sign, and exact."""

    def step(rest: Value) -> list[Value]:
        multiple = b.truncate(rest / divisor)
        product, error = product_and_error(b, multiple, divisor)
        # Product and rest are so close that the difference is exact.
        reduced = (rest - product) - error
        return [b.select(b.fabs(rest) < divisor, rest, reduced)]

    def unfinished(rest: Value) -> Value:
        lanes = (b.fabs(rest) >= divisor) & (divisor > 0.0) & (b.fabs(rest) < math.inf)
        return b.any(lanes)

    return b.repeat([start], step, unfinished)[0]

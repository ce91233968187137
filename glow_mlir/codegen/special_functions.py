"""
The error function and the exact remainder.

erf is `x (1 + P(x^2))` below one and `1 - exp(-Q(|x|))` from there on, Q being the negative logarithm of the
complementary error function. Both are minimax fits (Remez exchange in 50 digits, weighted for the relative error of
erf: 2^-29.6 and 2^-29.8 for f32, 2^-62.7 and 2^-59.5 for f64), derived for this project.
"""

from __future__ import annotations

from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.exponentials import exp_small
from glow_mlir.codegen.float_format import polynomial, product_and_error
from glow_mlir.codegen.types import f32, f64
from glow_mlir.codegen.value import Value

P = {
    32: (
        *(0.12837917, -0.37612626, 0.112835854, -0.026853811),
        *(0.0051883273, -0.00080101896, 7.8538484e-05),
    ),
    64: (
        *(0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072896),
        *(0.005223977624780872, -0.0008548326978742394, 0.00012055331036903577, -1.4925593506949914e-05),
        *(1.6460972817739361e-06, -1.6350025229646525e-07, 1.4657879892961192e-08, -1.136566618748428e-09),
        5.945262190953146e-11,
    ),
}
Q = {
    32: (
        *(0.00034153197, 1.1270891, 0.6381449, 0.103106685),
        *(-0.021838026, 0.0029476478, -0.00018637805),
    ),
    64: (
        *(1.7960787496634092e-07, 1.1283773293831223, 0.6366284883856301, 0.10274725358337428),
        *(-0.019078157693073965, -0.00028048612186729125, 0.0017689982559323007, -0.0006411708919501251),
        *(4.48214088281999e-05, 7.03670896780959e-05, -4.5037512715245534e-05, 1.6513967550226854e-05),
        *(-4.3270474262770705e-06, 8.505756514804003e-07, -1.2570534030657623e-07, 1.3626777574653848e-08),
        *(-1.0257094933611485e-09, 4.796094430916994e-11, -1.0496375445045838e-12),
    ),
}
LIMIT = {32: 4.0, 64: 6.0}
"""From here on erf rounds to 1, and the fit ends."""


def erf(b: Builder, x: Value) -> Value:
    """Return the error function."""
    bits = x.info.bits
    magnitude = b.fabs(x)
    near = b.fma(x, polynomial(b, x * x, P[bits]), x)
    far = 1.0 - exp_small(b, -polynomial(b, b.min(LIMIT[bits], magnitude), Q[bits]))
    return b.select(magnitude < 1.0, near, b.copysign(far, x))


def remf(b: Builder, x: Value, y: Value) -> Value:
    """
    Return `x - y * trunc(x / y)` exactly, with the sign of x: C's `fmod`, the dialect's `arith.remf`.

    NaN for an infinite x or a zero y. Each round of the loop takes a multiple of y away that has as many digits as
    a float holds, so that one round is enough unless x / y exceeds 2^53.
    """
    if x.info.bits == 32:
        return b.cast(remf(b, b.cast(x, f64), b.cast(y, f64)), f32)
    divisor = b.fabs(y)
    rest = b.fabs(x)
    # A quotient may exceed the range of floats: large multiples of the divisor go first. Where a multiple is
    # infinite there is nothing to take away.
    for power in (1500, 750, 0):
        multiple = divisor * 2.0 ** (power // 2) * 2.0 ** (power // 2)
        rest = _reduce(b, rest, multiple)
    rest = b.select(rest < 0.0, rest + divisor, rest)
    valid = (b.fabs(x) < float("inf")) & (divisor > 0.0)
    return b.select(valid, b.copysign(rest, x), b.constant(float("nan"), x.type))


def _reduce(b: Builder, start: Value, divisor: Value) -> Value:
    """Return `start` less a multiple of the divisor, below it in magnitude; of either sign, and exact."""

    def step(rest: Value) -> list[Value]:
        multiple = b.truncate(rest / divisor)
        product, error = product_and_error(b, multiple, divisor)
        # Product and rest are so close that the difference is exact.
        reduced = (rest - product) - error
        return [b.select(b.fabs(rest) < divisor, rest, reduced)]

    def unfinished(rest: Value) -> Value:
        lanes = (b.fabs(rest) >= divisor) & (divisor > 0.0) & (b.fabs(rest) < float("inf"))
        return b.reduce(lanes, b.or_)

    return b.repeat([start], step, unfinished)[0]

"""
Trigonometric functions and their inverses, computed in f64 (an f32 is widened and rounded once at the end).

The argument is reduced by multiples of pi/2 in three parts (Cody and Waite) below a magnitude of 2^22, and exactly from
there on (`large_angles.py`); a vector takes the second way where one of its lanes has to.
The polynomials are minimax fits (Remez exchange in 50 digits, weighted for relative error), derived for this project:
sine 2^-28 (for f32) and 2^-58 (for f64), cosine 2^-33 and 2^-64, arc tangent 2^-30 and 2^-64, arc sine 2^-27.6 and
2^-55.9.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.float_format import (
    Function,
    is_negative,
    keep_tiny,
    nearest_integer,
    polynomial,
)
from glow_mlir.codegen.math.large_angles import of_any_angle

HALF_PI_PARTS = (1.5707963276654482, -8.705515692000731e-10, -3.50343439808993e-19)
"""pi/2; the first two parts have 30 bits each, so that their products with the multiple are exact."""

HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)


class Coefficients(NamedTuple):
    """The polynomials that give one precision."""

    sine: Sequence[float]
    cosine: Sequence[float]
    arc_tangent: Sequence[float]
    arc_sine: Sequence[float]


COEFFICIENTS = {
    32: Coefficients(
        sine=(-0.1666665487335786, 0.008332173540391377, -0.00019516655590065513),
        cosine=(0.041666646747889245, -0.001388736145284247, 2.4437730185153505e-05),
        arc_tangent=(
            *(-0.33333315421888887, 0.1999848390658417, -0.14243737155050676),
            *(0.105951286670364, -0.06081129703061583),
        ),
        arc_sine=(
            *(0.16666754127038635, 0.07495232775102849, 0.045478332832534316),
            *(0.024141032321165042, 0.04223048113024691),
        ),
    ),
    64: Coefficients(
        sine=(
            *(-0.16666666666666632, 0.008333333333322316, -0.00019841269829725346),
            *(2.7557313662094935e-06, -2.5050753269279795e-08, 1.5896505178497513e-10),
        ),
        cosine=(
            *(0.0416666666666666, -0.001388888888887399, 2.480158728939495e-05),
            *(-2.755731432602047e-07, 2.0875719555529986e-09, -1.1359448444202524e-11),
        ),
        arc_tangent=(
            *(-0.33333333333333326, 0.1999999999999767, -0.14285714285388096, 0.11111111088183019),
            *(-0.09090908144708634, 0.0769228276255218, -0.06666226812135238, 0.05877022307030672),
            *(-0.0521840748185795, 0.045035612235226355, -0.03347471265730525, 0.0151953931800129),
        ),
        arc_sine=(
            *(0.16666666666665375, 0.07500000000344834, 0.044642856821955575, 0.030381959396068726),
            *(0.022371751928489694, 0.017359795728114902, 0.013884349957014125, 0.012174944263504963),
            *(0.006503514798814894, 0.01959435155943739, -0.0163267048952318, 0.03198169611982701),
        ),
    ),
}


def _at_precision(body: Callable[[Builder, Value, Coefficients], Value]) -> Function:
    """Return a function of one f32 or f64, made from its f64 form and the coefficients for the precision."""

    @functools.wraps(body)
    def function(b: Builder, x: Value) -> Value:
        if x.info.bits == 64:
            return body(b, x, COEFFICIENTS[64])
        return b.cast(body(b, b.cast(x, f64), COEFFICIENTS[32]), f32)

    return function


# ---- sine, cosine, tangent


def _reduce_angle(b: Builder, x: Value) -> tuple[Value, Value]:
    """Return x, below `LARGE`, less its nearest multiple of pi/2, and that multiple in the low bits of an integer."""
    n, shifted = nearest_integer(b, x, 2 / math.pi)
    r = x
    for part in HALF_PI_PARTS:
        r = b.fma(n, -part, r)
    return r, b.bits_of(shifted)


def _of_angle(body: Callable[[Builder, Value, Value, Value, Value], Value], name: str) -> Function:
    """
    Return a function of one f32 or f64, made from `body(b, x, sine, cosine, multiple)`.

    These are sine and cosine of x less its nearest multiple of pi/2, and that multiple in the low bits.
    """

    def function(b: Builder, x: Value, with_: Coefficients) -> Value:
        def finish(b: Builder, x: Value, r: Value, multiple: Value) -> Value:
            return body(b, x, *_sine_and_cosine(b, r, with_), multiple)

        bits = next(bits for bits, known in COEFFICIENTS.items() if known is with_)

        def usual(b: Builder, x: Value) -> Value:
            return finish(b, x, *_reduce_angle(b, x))

        return of_any_angle(b, x, usual, finish, f"large_{name}.f{bits}")

    return _at_precision(function)


def _sine_and_cosine(b: Builder, r: Value, with_: Coefficients) -> tuple[Value, Value]:
    """Return sine and cosine of an angle within +-pi/4."""
    z = r * r
    sine = b.fma(r * z, polynomial(b, z, with_.sine), r)
    half = z * 0.5
    near_one = 1.0 - half
    return sine, near_one + (((1.0 - near_one) - half) + z * z * polynomial(b, z, with_.cosine))


def _quadrant(b: Builder, multiple: Value, even: Value, odd: Value) -> Value:
    """Return `even` or `odd` as the multiple of pi/2 is, negated in the second half turn."""
    chosen = b.select((multiple & 1).ne(0), odd, even)
    return b.bitcast(b.bits_of(chosen) ^ ((multiple & 2) << 62), f64)


def _sin(b: Builder, x: Value, sine: Value, cosine: Value, multiple: Value) -> Value:
    return keep_tiny(b, x, _quadrant(b, multiple, sine, cosine))


def _cos(b: Builder, x: Value, sine: Value, cosine: Value, multiple: Value) -> Value:
    return _quadrant(b, multiple + 1, sine, cosine)


def _tan(b: Builder, x: Value, sine: Value, cosine: Value, multiple: Value) -> Value:
    odd = (multiple & 1).ne(0)
    return keep_tiny(b, x, b.select(odd, -cosine, sine) / b.select(odd, sine, cosine))


sin, cos, tan = _of_angle(_sin, "sin"), _of_angle(_cos, "cos"), _of_angle(_tan, "tan")
"""Sine, cosine and tangent of one f32 or f64, or a vector of them, of any magnitude."""


# ---- inverses


def _arc_tangent_of_magnitude(b: Builder, a: Value, with_: Coefficients) -> Value:
    """Return the arc tangent of a number that is not negative."""
    beyond, middle = a > math.tan(3 * math.pi / 8), a > math.tan(math.pi / 8)
    zero = b.constant(0.0, a.type)
    # atan(a) = pi/2 - atan(1/a) = pi/4 + atan((a - 1) / (a + 1)): one division serves all three.
    numerator = b.select(beyond, b.constant(-1.0, a.type), b.select(middle, a - 1.0, a))
    denominator = b.select(beyond, a, b.select(middle, a + 1.0, 1.0))
    base = [
        b.select(beyond, b.constant(half, a.type), b.select(middle, b.constant(quarter, a.type), zero))
        for half, quarter in zip(HALF_PI, QUARTER_PI, strict=True)
    ]
    t = numerator / denominator
    z = t * t
    return base[0] + (t + b.fma(t * z, polynomial(b, z, with_.arc_tangent), base[1]))


@_at_precision
def atan(b: Builder, x: Value, with_: Coefficients) -> Value:
    """Return the arc tangent, within -pi/2 to pi/2."""
    return b.copysign(_arc_tangent_of_magnitude(b, b.fabs(x), with_), x)


def atan2(b: Builder, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), within -pi to pi; signs of zeros and infinities count."""
    if x.info.bits == 32:
        return b.cast(atan2(b, b.cast(y, f64), b.cast(x, f64)), f32)
    rise, run = b.fabs(y), b.fabs(x)
    quotient = b.select(rise.eq(run), b.constant(1.0, x.type), rise / run)
    quotient = b.select(rise.eq(0.0) & run.eq(0.0), b.constant(0.0, x.type), quotient)
    angle = _arc_tangent_of_magnitude(b, quotient, COEFFICIENTS[64])
    other = (math.pi - angle) + HALF_PI[1] * 2
    result = b.copysign(b.select(is_negative(b, x), other, angle), y)
    return b.select(b.compare("uno", x, y), x + y, result)


def _arc_sine_parts(b: Builder, a: Value, with_: Coefficients) -> tuple[Value, Value]:
    """
    Return whether a magnitude is above one half, and an arc sine: of it, or of `sqrt((1 - a) / 2)` if it is.

    A magnitude above one gives NaN, from the root of a negative number.
    """
    above = a > 0.5
    z = b.select(above, (1.0 - a) * 0.5, a * a)
    s = b.select(above, b.sqrt(z), a)
    return above, b.fma(s * z, polynomial(b, z, with_.arc_sine), s)


@_at_precision
def asin(b: Builder, x: Value, with_: Coefficients) -> Value:
    """Return the arc sine; NaN outside -1 to 1."""
    above, angle = _arc_sine_parts(b, b.fabs(x), with_)
    return b.copysign(b.select(above, HALF_PI[0] - (angle * 2.0 - HALF_PI[1]), angle), x)


@_at_precision
def acos(b: Builder, x: Value, with_: Coefficients) -> Value:
    """Return the arc cosine; NaN outside -1 to 1."""
    above, angle = _arc_sine_parts(b, b.fabs(x), with_)
    twice = angle * 2.0
    outer = b.select(x > 0.0, twice, math.pi - (twice - 2 * HALF_PI[1]))
    return b.select(above, outer, HALF_PI[0] - (b.copysign(angle, x) - HALF_PI[1]))

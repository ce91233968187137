"""
Trigonometric functions and their inverses, computed in f64 (an f32 is widened and rounded once at the end).

On machines without f64, those of f32 are computed in pairs of f32 (`paired_angles.py`). So are the inverses on machines
with fused multiply-add: twice as many f32 fit into a vector. Below a magnitude of 2^22, the argument is reduced by
multiples of pi/2 in three parts (Cody and Waite); from there on, it is reduced exactly (`large_angles.py`). One large
lane of a vector is enough for the second way.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math import paired_angles
from glow_mlir.codegen.math.angle_polynomials import (
    COEFFICIENTS,
    HALF_PI,
    HALF_PI_PARTS,
    QUARTER_PI,
    Coefficients,
)
from glow_mlir.codegen.math.float_format import (
    Function,
    is_negative,
    keep_tiny,
    nearest_integer,
    polynomial,
)
from glow_mlir.codegen.math.large_angles import WHOLE, of_any_angle
from glow_mlir.codegen.math.roots import square_root
from glow_mlir.dialects.target import Target


def _inverse(paired: Function) -> Callable[[Callable[[Builder, Value, Coefficients], Value]], Function]:
    """As `_at_precision`; `paired` also computes an f32 where multiply-adds are fused, in less time than in f64."""
    return lambda body: _at_precision(body, paired, lambda target: target.fuses(32) or not target.doubles)


def _at_precision(
    body: Callable[[Builder, Value, Coefficients], Value],
    paired: Function,
    uses_pairs: Callable[[Target], bool] = lambda target: not target.doubles,
) -> Function:
    """
    Return a function of one f32 or f64, made from its f64 form and the coefficients for the precision.

    `paired` computes it for an f32 on machines that `uses_pairs` selects: without f64, by default.
    """

    @functools.wraps(body)
    def function(b: Builder, x: Value) -> Value:
        if x.info.bits == 64:
            return body(b, x, COEFFICIENTS[64])
        if uses_pairs(b.target):
            return paired(b, x)
        return b.cast(body(b, b.cast(x, f64), COEFFICIENTS[32]), f32)

    return function


# ---- sine, cosine, tangent


def _reduce_angle(b: Builder, x: Value) -> tuple[Value, Value]:
    """Return x, below `LARGE`, minus its nearest multiple of pi/2, and that multiple in the low bits of an integer."""
    n, shifted = nearest_integer(b, x, 2 / math.pi)
    r = x
    for part in HALF_PI_PARTS:
        r = b.fma(n, -part, r)
    return r, b.bits_of(shifted)


def _of_angle(body: Callable[[Builder, Value, Value, Value, Value], Value], name: str, paired: Function) -> Function:
    """
    Return a function of one f32 or f64, made from `body(b, x, sine, cosine, multiple)`.

    Sine and cosine are those of x minus its nearest multiple of pi/2; that multiple is in the low bits of an integer.
    """

    def function(b: Builder, x: Value, with_: Coefficients) -> Value:
        def finish(b: Builder, x: Value, r: Value, multiple: Value) -> Value:
            return body(b, x, *_sine_and_cosine(b, r, with_), multiple)

        bits = next(bits for bits, known in COEFFICIENTS.items() if known is with_)

        def usual(b: Builder, x: Value) -> Value:
            return finish(b, x, *_reduce_angle(b, x))

        return of_any_angle(b, x, usual, finish, f"large_{name}.f{bits}", WHOLE)

    return _at_precision(function, paired)


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


sin = _of_angle(_sin, "sin", paired_angles.sin)
cos = _of_angle(_cos, "cos", paired_angles.cos)
tan = _of_angle(_tan, "tan", paired_angles.tan)
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


@_inverse(paired_angles.atan)
def atan(b: Builder, x: Value, with_: Coefficients) -> Value:
    """Return the arc tangent, within -pi/2 to pi/2."""
    return b.copysign(_arc_tangent_of_magnitude(b, b.fabs(x), with_), x)


def atan2(b: Builder, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), within -pi to pi; signs of zeros and infinities count."""
    if x.info.bits == 32 and not b.target.doubles:
        return paired_angles.atan2(b, y, x)
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
    s = b.select(above, square_root(b, z), a)
    return above, b.fma(s * z, polynomial(b, z, with_.arc_sine), s)


@_inverse(paired_angles.asin)
def asin(b: Builder, x: Value, with_: Coefficients) -> Value:
    """Return the arc sine; NaN outside -1 to 1."""
    above, angle = _arc_sine_parts(b, b.fabs(x), with_)
    return b.copysign(b.select(above, HALF_PI[0] - (angle * 2.0 - HALF_PI[1]), angle), x)


@_inverse(paired_angles.acos)
def acos(b: Builder, x: Value, with_: Coefficients) -> Value:
    """Return the arc cosine; NaN outside -1 to 1."""
    above, angle = _arc_sine_parts(b, b.fabs(x), with_)
    twice = angle * 2.0
    outer = b.select(x > 0.0, twice, math.pi - (twice - 2 * HALF_PI[1]))
    return b.select(above, outer, HALF_PI[0] - (b.copysign(angle, x) - HALF_PI[1]))

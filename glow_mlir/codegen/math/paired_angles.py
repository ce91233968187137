"""
Trigonometric functions of f32 in pairs of f32, for machines without f64, and their inverses, for all machines.

They use polynomials (`angle_polynomials.py`). Only what is added to them is in pairs where they are small, as in the
inverses, else their leading terms are as well. Below a magnitude of 2^10, angles are reduced by multiples of pi/2 in
four parts (Cody and Waite), and exactly from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.angle_polynomials import (
    COEFFICIENTS,
    HALF_PI_OF_F32,
    HALF_PI_PARTS_OF_F32,
    QUARTER_PI_OF_F32,
    in_two_parts,
)
from glow_mlir.codegen.math.float_format import Function, is_negative, keep_tiny, nearest_integer, polynomial
from glow_mlir.codegen.math.large_angles import PAIRED, of_any_angle
from glow_mlir.codegen.math.pairs import (
    Pair,
    add,
    constant_pair,
    divide,
    exact_sum,
    multiply,
    negated,
    ordered_sum,
    polynomial_of_pair,
    product_and_error,
    remainder,
    select,
)
from glow_mlir.codegen.math.quotients import rough_inverse
from glow_mlir.codegen.math.roots import square_root

_SINE, _COSINE, _ARC_TANGENT, _ARC_SINE = COEFFICIENTS[32]

BEYOND_ALL = 2.0**60
"""The arc tangent is constant from far below this number on."""


# ---- sine, cosine, tangent


def _of_angle(body: Callable[[Builder, Value, Pair, Pair, Value], Value], name: str) -> Function:
    """Return a function of an f32 made from `body(b, x, sine, cosine, multiple)`, as `trigonometry.py` has them."""

    def finish(b: Builder, x: Value, rest: Pair, multiple: Value) -> Value:
        return body(b, x, *_sine_and_cosine(b, rest), multiple)

    def usual(b: Builder, x: Value) -> Value:
        return finish(b, x, *_reduce_angle(b, x))

    return lambda b, x: of_any_angle(b, x, usual, finish, f"large_{name}.f32.paired", PAIRED)


def _reduce_angle(b: Builder, x: Value) -> tuple[Pair, Value]:
    """Return x less its nearest multiple of pi/2, and that multiple in the low bits of an integer."""
    n, shifted = nearest_integer(b, x, 2 / math.pi)
    first, second, third, fourth = (n * -part for part in HALF_PI_PARTS_OF_F32)
    # The first sum is exact; where the others cancel, they are exact as well.
    near = exact_sum(x + first, second)
    nearer = exact_sum(near.high, third)
    return exact_sum(nearer.high, near.low + nearer.low + fourth), b.bits_of(shifted)


def _sine_and_cosine(b: Builder, r: Pair) -> tuple[Pair, Pair]:
    """Return sine and cosine of an angle within +-pi/4."""
    z = multiply(b, r, r)
    slope = polynomial_of_pair(b, z, [in_two_parts(_SINE[0])], _SINE[1:])
    sine = add(r, multiply(b, r, multiply(b, z, slope)))
    near_one = ordered_sum(b.constant(1.0, r.high.type), z.high * -0.5)
    bend = polynomial_of_pair(b, z, [in_two_parts(_COSINE[0])], _COSINE[1:])
    small = multiply(b, z, multiply(b, z, bend))
    cosine = ordered_sum(near_one.high, near_one.low + (small.high + (small.low + z.low * -0.5)))
    return sine, cosine


def _quadrant(b: Builder, multiple: Value, even: Pair, odd: Pair) -> Value:
    """Return `even` or `odd` as the multiple of pi/2 is, negated in the second half turn."""
    chosen = b.select((multiple & 1).ne(0), odd.high, even.high)
    return b.bitcast(b.bits_of(chosen) ^ ((multiple & 2) << 30), f32)


def _sin(b: Builder, x: Value, sine: Pair, cosine: Pair, multiple: Value) -> Value:
    return keep_tiny(b, x, _quadrant(b, multiple, sine, cosine))


def _cos(b: Builder, x: Value, sine: Pair, cosine: Pair, multiple: Value) -> Value:
    return _quadrant(b, multiple + 1, sine, cosine)


def _tan(b: Builder, x: Value, sine: Pair, cosine: Pair, multiple: Value) -> Value:
    odd = (multiple & 1).ne(0)
    quotient = divide(b, select(b, odd, negated(cosine), sine), select(b, odd, sine, cosine))
    return keep_tiny(b, x, quotient.high)


sin, cos, tan = _of_angle(_sin, "sin"), _of_angle(_cos, "cos"), _of_angle(_tan, "tan")
"""Sine, cosine and tangent of an f32, or a vector of them, of any magnitude."""


# ---- inverses


def _arc_tangent(b: Builder, rise: Value, run: Value) -> Pair:
    """Return the arc tangent of a quotient of numbers that are not negative, and far from the ends of the range."""
    zero, none = b.constant(0.0, rise.type), constant_pair(b, (0.0, 0.0), rise)
    beyond, middle = rise > run * math.tan(3 * math.pi / 8), rise > run * math.tan(math.pi / 8)
    # atan(a) = pi/2 - atan(1/a) = pi/4 + atan((a - 1) / (a + 1)): one division serves all three.
    numerator = select(b, middle, exact_sum(rise, -run), Pair(rise, zero))
    denominator = select(b, middle, exact_sum(rise, run), Pair(run, zero))
    numerator = select(b, beyond, Pair(-run, zero), numerator)
    denominator = select(b, beyond, Pair(rise, zero), denominator)
    base = select(b, middle, constant_pair(b, QUARTER_PI_OF_F32, rise), none)
    base = select(b, beyond, constant_pair(b, HALF_PI_OF_F32, rise), base)
    t = divide(b, numerator, denominator)
    z = multiply(b, t, t)
    slope = polynomial_of_pair(b, z, [in_two_parts(_ARC_TANGENT[0])], _ARC_TANGENT[1:])
    return add(base, add(t, multiply(b, t, multiply(b, z, slope))))


def atan(b: Builder, x: Value) -> Value:
    """Return the arc tangent, within -pi/2 to pi/2."""
    a = b.min(BEYOND_ALL, b.fabs(x))
    if not b.target.fuses(x.info.bits):  # Then single floats are too coarse for the polynomial.
        return keep_tiny(b, x, b.copysign(_arc_tangent(b, a, b.constant(1.0, x.type)).high, x))
    beyond, middle = a > math.tan(3 * math.pi / 8), a > math.tan(math.pi / 8)
    zero, one = b.constant(0.0, a.type), b.constant(1.0, a.type)
    # Between these two numbers, the sums with one are as exact as if one was the larger number.
    numerator = select(b, middle, ordered_sum(-one, a), Pair(a, zero))
    numerator = select(b, beyond, Pair(-one, zero), numerator)
    denominator = select(b, middle, ordered_sum(one, a), Pair(one, zero))
    denominator = select(b, beyond, Pair(a, zero), denominator)
    base = b.select(middle, b.constant(QUARTER_PI_OF_F32[0], a.type), zero)
    base = b.select(beyond, b.constant(HALF_PI_OF_F32[0], a.type), base)
    t = numerator.high / denominator.high
    rest = remainder(b, numerator.high, t, denominator.high)
    rest = b.fma(t, -denominator.low, rest + numerator.low) * rough_inverse(b, denominator.high)
    square, lost = product_and_error(b, t, t)
    total = ordered_sum(base, t)
    small = b.fma(base, HALF_PI_OF_F32[1] / HALF_PI_OF_F32[0], total.low)
    more = _bend(b, Pair(t, rest), Pair(square, b.fma(t + t, rest, lost)), _ARC_TANGENT, small)
    return keep_tiny(b, x, b.copysign(total.high + more, x))


def atan2(b: Builder, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), within -pi to pi; signs of zeros and infinities count."""
    rise, run = b.fabs(y), b.fabs(x)
    # Two infinities have the ratio of one to one, an infinity and a number that of one to zero.
    far = b.max(rise, run).eq(math.inf)
    near = b.max(rise, run).eq(0.0)
    one, zero = b.constant(1.0, x.type), b.constant(0.0, x.type)
    rise_of_far, run_of_far = (b.select(side.eq(math.inf), one, zero) for side in (rise, run))
    # Scale, so that neither products nor quotients leave the range.
    largest = b.max(rise, run)
    scale = b.select(largest > 2.0**40, 2.0**-60, b.select(largest < 2.0**-40, b.constant(2.0**60, x.type), one))
    rise = b.select(far, rise_of_far, rise * scale)
    run = b.select(far, run_of_far, b.select(near, one, run * scale))
    angle = _arc_tangent(b, rise, run)
    other = add(constant_pair(b, (2 * HALF_PI_OF_F32[0], 2 * HALF_PI_OF_F32[1]), x), negated(angle))
    result = b.copysign(b.select(is_negative(b, x), other.high, angle.high), y)
    return b.select(b.compare("uno", x, y), x + y, result)


def _arc_sine(b: Builder, a: Value) -> tuple[Value, Value, Value]:
    """
    Return whether a magnitude is above one half, and an arc sine: of it, or of `sqrt((1 - a) / 2)` if it is.

    The arc sine is in two parts, of which the second one is smaller by a factor of 20. A magnitude above one gives NaN,
    from the root of a negative number.
    """
    above, zero = a > 0.5, b.constant(0.0, a.type)
    half = (1.0 - a) * 0.5
    root = square_root(b, half)
    s, z = b.select(above, root, a), b.select(above, half, a * a)
    # Above, the square is exact and the root rounded, below the other way round.
    lost = remainder(b, z, s, s)
    s_low = b.select(above, lost * rough_inverse(b, s + s), zero)
    return above, s, _bend(b, Pair(s, s_low), Pair(z, b.select(above, zero, -lost)), _ARC_SINE, zero)


def _bend(b: Builder, s: Pair, z: Pair, coefficients: Sequence[float], more: Value) -> Value:
    """
    Return how far an arc function of a number is from its first part, and something more; `z` is the number's square.

    The cube of the number is in a pair, and its product with the first coefficient is rounded only once: what they lose
    would be a fifth of a unit in the last place of the function.
    """
    cube, lost = product_and_error(b, s.high, z.high)
    lost = b.fma(s.high, z.low, b.fma(s.low, z.high, lost))
    first, first_low = in_two_parts(coefficients[0])
    slope = b.fma(polynomial(b, z.high, coefficients[1:]), z.high, first_low)
    return b.fma(cube, first, b.fma(cube, slope, b.fma(lost, first, s.low + more)))


def asin(b: Builder, x: Value) -> Value:
    """Return the arc sine; NaN outside -1 to 1."""
    above, angle, more = _arc_sine(b, b.fabs(x))
    high, low = HALF_PI_OF_F32
    total = ordered_sum(b.constant(high, x.type), angle * -2.0)
    other = total.high + (b.fma(more, -2.0, total.low + low))
    return keep_tiny(b, x, b.copysign(b.select(above, other, angle + more), x))


def acos(b: Builder, x: Value) -> Value:
    """Return the arc cosine; NaN outside -1 to 1."""
    above, angle, more = _arc_sine(b, b.fabs(x))
    positive, half_pi = x > 0.0, constant_pair(b, HALF_PI_OF_F32, x)
    # The angle is twice the arc sine, pi less that, or a right angle less or more the arc sine.
    base = select(b, above, Pair(half_pi.high * 2.0, half_pi.low * 2.0), half_pi)
    base = select(b, above & positive, constant_pair(b, (0.0, 0.0), x), base)
    one = b.constant(1.0, x.type)
    factor = b.select(above, one + one, one)
    factor = b.select(positive.eq(above), factor, -factor)
    total = ordered_sum(base.high, angle * factor)
    return total.high + b.fma(more, factor, total.low + base.low)

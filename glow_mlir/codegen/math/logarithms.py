"""
The logarithm and functions derived from it: log, log2, log10, log1p, asinh, acosh, atanh, powf.

With `x = 2^k * m`, m within `sqrt(1/2)` and `sqrt(2)`, `f = m - 1` and `s = f / (2 + f)`, the logarithm of m is
`2 s + s R(s^2)`. `R(z) / z` is a minimax fit (Remez exchange in 50 digits, weighted for relative error: 2^-30.2 for
f32, 2^-59.5 for f64), derived for this project. A power magnifies the error of its logarithm up to a thousand times, so
it needs one of 65 bits: `2 s + 2/3 s^3 + s^5 P(s^2)`, with a fit P of 2^-53.8. A power of f32 uses a logarithm in f64
or, on machines without f64, one of 36 bits, with the first terms of the series for P.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.exponentials import EXP_RANGE, LN2, exp, expm1_reduced, reduce_by_ln2
from glow_mlir.codegen.math.float_format import (
    INFINITY,
    NAN,
    clamp_keeping_nan,
    format_of,
    is_negative,
    keep_tiny,
    polynomial,
    scale,
)
from glow_mlir.codegen.math.pairs import exact_sum, product_and_error
from glow_mlir.codegen.math.roots import square_root

R = {
    32: (0.66666776, 0.39977494, 0.29873094),
    64: (
        *(0.6666666666666735, 0.3999999999941109, 0.2857142874326371, 0.2222219847584909),
        *(0.18183569747331255, 0.15313903052210914, 0.14797509666436426),
    ),
}
P = {
    32: (0.4, 2 / 7, 2 / 9, 2 / 11, 2 / 13),
    64: (
        *(0.4, 0.2857142857142937, 0.22222222221655236, 0.1818181833551788),
        *(0.15384594951120162, 0.13334805224565216, 0.11706224150571651, 0.11723287938480628),
    ),
}
TWO_THIRDS = {32: (0.6666666865348816, -1.9868215517249155e-08), 64: (0.6666666666666666, 3.700743415417188e-17)}
LOG10_2 = {32: (0.301025390625, 4.605038981195214e-06), 64: (0.3010299956658855, -1.9043128467164274e-12)}
LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
LARGE = {32: 2.0**40, 64: 2.0**100}
"""From here on `log(x + sqrt(x^2 + 1))` is `log(1 + x) + log(2)`, and below it x^2 does not overflow."""


class Split(NamedTuple):
    """A positive number as `2^exponent * (1 + fraction)`, all floats."""

    exponent: Value
    fraction: Value


def split(b: Builder, x: Value) -> Split:
    """Split a positive finite number, denormal or not; the result for other numbers is arbitrary."""
    form = format_of(x)
    tiny = x < form.smallest_normal
    up = 2 + form.mantissa
    bits = b.bits_of(b.select(tiny, x * 2.0**up, x))
    root = _float_bits(math.sqrt(0.5), x)
    one = form.bias << form.mantissa
    # Shifted so that the exponent steps at sqrt(1/2), not at 1; the number is positive, so is the exponent.
    biased = b.lshr(bits + (one - root), form.mantissa)
    m = b.bitcast(bits - (biased << form.mantissa) + one, form.type)
    # A small integer becomes a float by standing in the low bits of a large one.
    large = 2.0**form.mantissa
    exponent = b.bitcast(b.or_(biased, _float_bits(large, x)), form.type) - (large + form.bias)
    return Split(b.select(tiny, exponent - float(up), exponent), m - 1.0)


def _float_bits(value: float, like: Value) -> int:
    """Return the bits of a positive float, in the format of `like`, as an integer."""
    form = format_of(like)
    mantissa, exponent = math.frexp(value)
    return ((exponent - 1 + form.bias) << form.mantissa) + int((mantissa * 2 - 1) * 2**form.mantissa)


class Terms(NamedTuple):
    """The logarithm of `1 + f` as `f - (half_square - tail)`; the last two are small."""

    fraction: Value
    half_square: Value
    tail: Value


def log_terms(b: Builder, fraction: Value) -> Terms:
    """Return the terms of the logarithm of `1 + fraction`, which is within sqrt(1/2) and sqrt(2)."""
    s = fraction / (fraction + 2.0)
    z = s * s
    half_square = fraction * fraction * 0.5
    return Terms(fraction, half_square, s * (half_square + z * polynomial(b, z, R[z.info.bits])))


def _of_fraction(b: Builder, fraction: Value) -> Value:
    f, half_square, tail = log_terms(b, fraction)
    return f - (half_square - tail)


def _with_edges(b: Builder, x: Value, result: Value) -> Value:
    """Return `result` where x is positive and finite, and the value of any logarithm elsewhere."""
    inside = b.select(x < INFINITY, result, x)
    return b.select(x > 0.0, inside, b.select(x.eq(0.0), b.constant(-INFINITY, x.type), NAN))


def log(b: Builder, x: Value) -> Value:
    """Return the natural logarithm."""
    exponent, fraction = split(b, x)
    high, low = LN2[x.info.bits]
    f, half_square, tail = log_terms(b, fraction)
    result = exponent * high - ((half_square - b.fma(exponent, low, tail)) - f)
    return _with_edges(b, x, result)


def log2(b: Builder, x: Value) -> Value:
    """Return the logarithm to base two; of a power of two, exactly."""
    exponent, fraction = split(b, x)
    natural = _of_fraction(b, fraction)
    return _with_edges(b, x, b.fma(natural, LOG2_E[0], exponent))


def log10(b: Builder, x: Value) -> Value:
    """Return the logarithm to base ten."""
    exponent, fraction = split(b, x)
    high, low = LOG10_2[x.info.bits]
    small = b.fma(_of_fraction(b, fraction), LOG10_E[0], exponent * low)
    return _with_edges(b, x, exponent * high + small)


def _log1p(b: Builder, x: Value) -> Value:
    """Return `log(1 + x)`, with +0 for -0."""
    high, low = LN2[x.info.bits]
    u = x + 1.0
    # The rounding error of the addition, relative to u.
    lost = b.select(x > 1.0, 1.0 - (u - x), x - (u - 1.0)) / u
    exponent, fraction = split(b, u)
    unscaled = exponent.eq(0.0)
    f, half_square, tail = log_terms(b, b.select(unscaled, x, fraction))
    correction = b.select(unscaled, b.constant(0.0, x.type), lost)
    small = b.fma(exponent, low, tail + correction)
    return _with_edges(b, u, exponent * high - ((half_square - small) - f))


def log1p(b: Builder, x: Value) -> Value:
    """Return `log(1 + x)`, accurate near zero."""
    return keep_tiny(b, x, _log1p(b, x))


def asinh(b: Builder, x: Value) -> Value:
    """Return the inverse hyperbolic sine."""
    a = b.fabs(x)
    square = a * a
    large = a > LARGE[x.info.bits]
    argument = b.select(large, a, a + square / (square_root(b, square + 1.0) + 1.0))
    extra = b.select(large, b.constant(math.log(2), x.type), 0.0)
    return b.copysign(_log1p(b, argument) + extra, x)


def acosh(b: Builder, x: Value) -> Value:
    """Return the inverse hyperbolic cosine; NaN below 1."""
    t = x - 1.0
    large = x > LARGE[x.info.bits]
    argument = b.select(large, x, t + square_root(b, b.fma(t, t, t * 2.0)))
    extra = b.select(large, b.constant(math.log(2), x.type), 0.0)
    return b.select(x < 1.0, b.constant(NAN, x.type), _log1p(b, argument) + extra)


def atanh(b: Builder, x: Value) -> Value:
    """Return the inverse hyperbolic tangent; NaN outside -1 to 1."""
    a = b.fabs(x)
    return b.copysign(_log1p(b, a * 2.0 / (1.0 - a)) * 0.5, x)


# ---- powers


def _log_in_two_parts(b: Builder, x: Value) -> tuple[Value, Value]:
    """Return the logarithm of a positive f64 as a sum, accurate to 65 bits; of an f32, to 36 bits."""
    bits = x.info.bits
    exponent, f = split(b, x)
    u = f + 2.0
    s = f / u
    product, product_error = product_and_error(b, s, u)
    s_rest = (((f - product) - product_error) - s * (f - (u - 2.0))) / u
    # 2/3 s^3 is so large that it needs two parts as well; in the rest, s^5 P(s^2), one rounding does not matter.
    z, z_error = product_and_error(b, s, s)
    cube, cube_error = product_and_error(b, s, z)
    third, third_error = product_and_error(b, cube, b.constant(TWO_THIRDS[bits][0], x.type))
    cube_rest = cube_error + s * (z_error + s * s_rest * 2.0) + s_rest * z
    small = third_error + b.fma(cube, TWO_THIRDS[bits][1], cube_rest * TWO_THIRDS[bits][0])
    small = small + b.fma(cube * z, polynomial(b, z, P[bits]), s_rest * 2.0)
    high, low = LN2[bits]
    whole, whole_rest = exact_sum(exponent * high, s * 2.0)
    total, total_rest = exact_sum(whole, third)
    rest = (whole_rest + total_rest) + b.fma(exponent, low, small)
    # The second part may still be a hundredth of the first: move what fits into it.
    high_part = total + rest
    return high_part, (total - high_part) + rest


def _power_of_magnitude(b: Builder, magnitude: Value, y: Value) -> Value:
    """Return `magnitude ** y` for a magnitude that is not negative."""
    high, low = _log_in_two_parts(b, magnitude)
    one = magnitude.eq(1.0)
    inside = (magnitude < INFINITY) & (magnitude > 0.0) & ~one
    infinite = b.select(magnitude.eq(0.0), b.constant(-INFINITY, y.type), magnitude)
    high = b.select(inside, high, infinite)
    exponent, error = product_and_error(b, y, high)
    exponent = b.select(one, b.constant(0.0, y.type), exponent)
    clamped = clamp_keeping_nan(b, exponent, *EXP_RANGE[y.info.bits])
    # Outside the range, for infinities and for one, the second part is meaningless.
    small = b.select(inside & clamped.eq(exponent), b.fma(y, low, error), b.constant(0.0, y.type))
    n, r = reduce_by_ln2(b, clamped)
    return scale(b, expm1_reduced(b, r + small) + 1.0, n)


def _power_for_f32(b: Builder, magnitude: Value, y: Value) -> Value:
    """Return the result of `_power_of_magnitude`, accurate to 40 bits: an f32 needs no logarithm in two parts."""
    exponent = b.select(magnitude.eq(1.0), 0.0, y * log(b, magnitude))
    return exp(b, exponent)


def powf(b: Builder, x: Value, y: Value) -> Value:
    """Return x to the power y as in IEEE 754: NaN for a negative x and a y that is no integer, 1 for y = 0."""
    if x.info.bits == 32 and b.target.doubles:
        return b.cast(_power(b, b.cast(x, f64), b.cast(y, f64), _power_for_f32), f32)
    return _power(b, x, y, _power_of_magnitude)


def _power(b: Builder, x: Value, y: Value, of_magnitude: Callable[[Builder, Value, Value], Value]) -> Value:
    """Return the power of two floats, given a function that raises a magnitude to a power."""
    magnitude = b.fabs(x)
    result = of_magnitude(b, magnitude, y)
    is_integer = b.round_even(y).eq(y)
    half = y * 0.5
    odd = is_integer & b.round_even(half).ne(half)
    result = b.select(odd & is_negative(b, x), -result, result)
    undefined = (x < 0.0) & (magnitude < INFINITY) & ~is_integer
    result = b.select(undefined, b.constant(NAN, x.type), result)
    result = b.select(b.compare("uno", x, y), x + y, result)
    return b.select(b.or_(y.eq(0.0), x.eq(1.0)), b.constant(1.0, x.type), result)

"""
Quotients by one number, with the same bits as a division but in less time.

A product with the reciprocal is sometimes off by a unit in the last place. One fused multiply-add gives the exact
remainder, and another one corrects the product to the rounded quotient (Markstein 1990), as long as all of them are
normal numbers. If a lane is too small for that, or its result is NaN, as for infinities, the whole vector is divided.
"""

from __future__ import annotations

import math

import numpy as np

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.math.float_format import FloatFormat, format_of
from glow_mlir.dialects.target import Target

FAR = 100
"""The exponent of two beyond which, in either direction, divisors of halves are divided by."""

INVERSE_BITS = 0x7EF311C7
"""The bits of an f32, plus about those of its inverse: the constant with the least error, 12 percent."""


def quotient_of_halves(b: Builder, x: Value, divisor: float) -> Value:
    """
    Return `x / divisor` of 16-bit numbers that are held as f32, for a result that is rounded to 16 bits.

    The reciprocal is the sum of two numbers of one sign. The product with it is exact but for one rounding to f32, and
    an error of less than 2⁻⁴⁷ of it. Quotients in the middle of two 16-bit numbers are therefore exact, and no other
    quotients come near the middle.
    """
    if not 2.0**-FAR < abs(divisor) < 2.0**FAR or not b.target.fuses(x.info.bits):
        return x / divisor
    lead = float(np.float32(1.0 / divisor))
    if abs(lead) > abs(1.0 / divisor):
        lead = float(np.nextafter(np.float32(lead), np.float32(0)))
    rest = (1.0 - lead * divisor) / divisor
    return x * lead if not rest else b.fma(x, lead, x * rest)


def rough_inverse(b: Builder, x: Value) -> Value:
    """
    Return `1 / x` of f32 that are not negative, and below 2^126, to six bits: for corrections; of zero, a large number.

    The difference of the bits is a line through the logarithms, and one step of Newton's squares its error.
    """
    guess = b.bitcast(INVERSE_BITS - b.bits_of(x), x.info.element)
    return guess * (2.0 - x * guess)


def quotient_by_number(b: Builder, x: Value, divisor: float) -> Value:
    """
    Return `x / divisor`, rounded correctly, of a vector of f32 or f64.

    The code has a branch. Targets without fused multiply-add divide.
    """
    form = format_of(x)
    mantissa, exponent = math.frexp(divisor)
    is_usual = mantissa != 0.0 and math.isfinite(mantissa) and -form.bias < exponent - 1 < form.bias - form.mantissa
    if not is_usual or x.lanes == 1 or not corrects_quotients(b.target, x.info.bits):
        return x / divisor
    if abs(mantissa) == 0.5:
        return x * (1.0 / divisor)
    # A divisor below 1 is scaled to 1 or more by a power of two, which rounds nothing: its reciprocal never overflows.
    raised = math.ldexp(1.0, min(exponent - 1, 0))
    divisor, given = divisor / raised, divisor
    inverse = _rounded(1.0 / divisor, form)
    guess = x * inverse
    # The sign of the remainder decides the sign of a zero: zeros of that sign are added to the guess.
    if divisor > 0:
        quotient = b.fma(b.fma(guess, divisor, -x), -inverse, guess)
    else:
        quotient = b.fma(b.fma(guess, -divisor, x), inverse, guess)
    is_odd = b.compare("uno", quotient, quotient)
    smallest = max(2.0 ** (2 * form.mantissa + 4 - form.bias), 2.0 ** (max(exponent, 0) + 2 - form.bias))
    is_odd = is_odd | _is_small(b, x, form, smallest)
    scaled = quotient if raised == 1.0 else quotient * (1.0 / raised)
    return b.either(b.any(is_odd), lambda: [x / given], lambda: [scaled])[0]


def quotient_by_value(b: Builder, x: Value, divisor: Value) -> Value:
    """
    Return `x / divisor`, rounded correctly, of a vector of f32 or f64 and one number that is known at run time only.

    The code has a branch, which divides by divisors that are not positive, or are far from 1, as well.
    """
    form = format_of(x)
    far = (form.bias - 7) // 2
    inverse = b.splat(b.constant(1.0, divisor.type) / divisor, x.lanes)
    spread = b.splat(divisor, x.lanes)
    guess = x * inverse
    quotient = b.fma(b.fma(guess, spread, -x), -inverse, guess)
    is_odd = b.compare("uno", quotient, quotient) | _is_small(b, x, form, 2.0 ** (far + 2 - form.bias))
    is_usual = b.compare("ogt", divisor, 2.0**-far) & b.compare("olt", divisor, 2.0**far)
    return b.either(b.any(is_odd) | (is_usual ^ 1), lambda: [x / spread], lambda: [quotient])[0]


def _is_small(b: Builder, x: Value, form: FloatFormat, smallest: float) -> Value:
    """Return which lanes are nearer to zero than a number, and not zero."""
    limit = int(np.array(smallest, _DTYPES[form.mantissa]).view(f"u{x.info.bits // 8}"))
    # The bits of zero less one are the largest number.
    return b.compare("ult", b.bits_of(b.fabs(x)) - 1, limit - 1)


_DTYPES = {23: np.float32, 52: np.float64}
"""Bits of the mantissa → the type in numpy."""


def _rounded(number: float, form: FloatFormat) -> float:
    """A number rounded to a format."""
    with np.errstate(over="ignore"):
        return float(_DTYPES[form.mantissa](number))


def corrects_quotients(target: Target, bits: int) -> bool:
    """Whether multiply-adds are faster than a division, for vectors of floats of that many bits."""
    return kernel_costs(target).quotient_vectors > 1 and target.fuses(bits)

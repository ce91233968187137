"""
Conversions between f32 and floats of at most 16 bits by integer arithmetic, derived from the format alone.

A format is a `FloatSemantics`: widths of exponent and mantissa, bias, and the bit patterns of infinities and NaN. Bit
patterns are the low bits of an i32, or of a vector of them; the bits above are ignored.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatNanEncoding, FloatNonfiniteBehavior, FloatSemantics

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.dialects.narrow_floats import largest_code

_MANTISSA, _BIAS = 23, 127
_MAGNITUDE, _INFINITY, _NAN = 0x7FFFFFFF, 0x7F800000, 0x7FC00000
_MIN_POWER = 0x00400000
"""Bits of 2⁻¹²⁷, which is denormal."""
_NO_POWER = 0xFF


def decoded(b: Builder, code: Value, semantics: FloatSemantics) -> Value:
    """Return the f32 of a bit pattern, exactly."""
    if not semantics.has_zero:
        return _decoded_power(b, code)
    shift, bias = _MANTISSA - semantics.mantissa_bits, semantics.exponent_bias
    sign = 1 << semantics.sign_shift
    magnitude = (code & (sign - 1)) << shift
    normal = magnitude + ((_BIAS - bias) << _MANTISSA)
    # Denormal numbers get a leading digit, which is subtracted again, since denormal operands may be slow.
    step = b.bitcast(magnitude + ((_BIAS + 1 - bias) << _MANTISSA), f32)
    denormal = b.bits_of(step - 2.0 ** (1 - bias))
    value = b.select(magnitude < (1 << _MANTISSA), denormal, normal)
    if semantics.nonfinite is FloatNonfiniteBehavior.IEEE:
        value = b.select(magnitude >= semantics.max_exponent << _MANTISSA, magnitude | _INFINITY, value)
    elif semantics.nonfinite is FloatNonfiniteBehavior.NAN_ONLY:
        if semantics.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO:
            value = b.select((code & (2 * sign - 1)).eq(sign), _NAN, value)
        else:
            value = b.select(magnitude.eq((sign - 1) << shift), _NAN, value)
    return b.bitcast(value | ((code & sign) << (31 - semantics.sign_shift)), f32)


def encoded(b: Builder, x: Value, semantics: FloatSemantics) -> Value:
    """
    Return the bit pattern of an f32, rounded to the nearest, ties to even.

    Numbers beyond the range become an infinity, or NaN in formats without one, or the largest number in formats with
    neither; these turn NaN into 0.
    """
    if not semantics.has_zero:
        return _encoded_power(b, x)
    digits, bias = semantics.mantissa_bits, semantics.exponent_bias
    shift, rebias = _MANTISSA - digits, (_BIAS - bias) << _MANTISSA
    bits = b.bits_of(x)
    magnitude = bits & _MAGNITUDE
    odd = b.lshr(magnitude, shift) & 1
    normal = b.lshr(magnitude + ((1 << shift - 1) - 1 - rebias) + odd, shift)
    # The last digit of a sum with this number is worth the smallest denormal one: the addition rounds.
    last = 2.0 ** (1 - bias + shift)
    denormal = b.bits_of(b.bitcast(magnitude, f32) + last) - b.bits_of(b.constant(last, x.type))
    code = b.select(magnitude < (_BIAS + 1 - bias) << _MANTISSA, denormal, normal)
    largest, is_finite = largest_code(semantics), semantics.nonfinite is FloatNonfiniteBehavior.FINITE_ONLY
    code = b.min(code, largest if is_finite else largest + 1)
    sign = b.lshr(bits, 31 - semantics.sign_shift) & (1 << semantics.sign_shift)
    if semantics.nonfinite is FloatNonfiniteBehavior.IEEE:
        quiet = largest + 1 + (1 << digits - 1)
        return b.select(magnitude > _INFINITY, quiet, code) | sign
    if semantics.nan_encoding is FloatNanEncoding.NEGATIVE_ZERO:
        return b.select(code.eq(0), 0, code | sign)
    return b.select(magnitude > _INFINITY, 0, code | sign) if is_finite else code | sign


def _decoded_power(b: Builder, code: Value) -> Value:
    """The power of two with this exponent; the smallest one is denormal."""
    low = code & _NO_POWER
    power = b.select(low.eq(0), _MIN_POWER, low << _MANTISSA)
    return b.bitcast(b.select(low.eq(_NO_POWER), _NAN, power), f32)


def _encoded_power(b: Builder, x: Value) -> Value:
    """
    The exponent of the nearest power of two, halves up; NaN for negative numbers and for those below the smallest one.
    """
    bits = b.bits_of(x)
    # Among denormal numbers, half a power is half of the smallest one.
    half = b.select(bits < 1 << _MANTISSA, b.constant(_MIN_POWER >> 1, bits.type), _MIN_POWER)
    code = b.lshr(bits + half, _MANTISSA)
    return b.select((bits < _MIN_POWER) | (code > _NO_POWER), _NO_POWER, code)

"""
Floats of 8 bits and less: their ranges, and conversions to them that saturate or round in another direction.

The `SEMANTICS` of a type are the widths of exponent and mantissa, the bias, whether it has signs, zeros and infinities,
and its NaN encodings. An `arith.truncf` rounds to the nearest, ties to even. A number beyond the range becomes an
infinity if the type has one, otherwise NaN, otherwise the largest number; NaN becomes 0 if the type has none. With
`f8E8M0FNU`, whose numbers are powers of two, halves round up, and numbers below the smallest one become NaN.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    FloatNanEncoding,
    FloatNonfiniteBehavior,
    FloatSemantics,
    ReducedPrecisionFloatType,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder

ROUND_MODES = ("nearest", "up", "down")
"""Directions in which a conversion to powers of two may round."""

_MANTISSAS: dict[Attribute, tuple[Attribute, int]] = {f32: (i32, 23), f64: (i64, 52)}
"""Float → the integer type of its bits, and the number of bits of its mantissa."""


def semantics_of(element: Attribute) -> FloatSemantics:
    """The semantics of the encodings of a narrow float."""
    return cast(ReducedPrecisionFloatType, element).SEMANTICS


def largest_code(semantics: FloatSemantics) -> int:
    """The encoding of the largest finite number."""
    top = (1 << semantics.exponent_bits + semantics.mantissa_bits) - 1
    if semantics.nonfinite is FloatNonfiniteBehavior.IEEE:
        return top - (1 << semantics.mantissa_bits)
    has_nan = semantics.nonfinite is FloatNonfiniteBehavior.NAN_ONLY
    return top - (has_nan and semantics.nan_encoding is FloatNanEncoding.ALL_ONES)


def limits(element: Attribute) -> tuple[float, float]:
    """The smallest number of a narrow float (negative if it has a sign) and the largest."""
    kind = cast(ReducedPrecisionFloatType, element)
    most = kind.decode_bits(largest_code(kind.SEMANTICS))
    return -most if kind.SEMANTICS.has_sign else kind.decode_bits(0), most


def is_power_of_two(element: Attribute) -> bool:
    """Whether the numbers of a narrow float are powers of two, as those of `f8E8M0FNU`."""
    return not semantics_of(element).has_zero


def narrowed(b: ScalarBuilder, x: Scalar, to: Attribute, saturate: bool, round_mode: str) -> Scalar:
    """
    Convert a number to a narrow float, rounded once; with `saturate`, numbers out of range are clamped.

    `round_mode` is one of `ROUND_MODES`, and applies to powers of two only.
    """
    number = b.as_float(x)
    if is_power_of_two(to):
        number = _power_of_two(b, number, limits(to), saturate, round_mode)
    elif saturate and semantics_of(to).nonfinite is not FloatNonfiniteBehavior.FINITE_ONLY:
        number = b.clamp(number, *limits(to))
    return b.convert(number, to)


def _power_of_two(b: ScalarBuilder, x: Scalar, ends: tuple[float, float], saturate: bool, round_mode: str) -> Scalar:
    """
    Round a float to a power of two in a direction, unless it is below all of them; with `saturate`, clamp it to their
    range. NaN stays. Bits are compared instead of floats: the smallest power is denormal, which vector code may treat
    as 0.
    """
    if round_mode == "nearest" and not saturate:
        return x
    integer, mantissa = _MANTISSAS[x.element]
    least, most = np.array(ends, numpy_dtype(x.element)).view(numpy_dtype(integer)).tolist()
    fraction = (1 << mantissa) - 1
    bits = given = b.bitcast(x, integer)
    if round_mode == "up":
        bits = b.select(given > least, b.binary("and", given + fraction, ~fraction), given)
    elif round_mode == "down":
        # The exponent field of a denormal number between `least` and twice `least` gives no power of two.
        bits = b.maximum(b.binary("and", given, ~fraction), b.minimum(given, least))
    if saturate:
        bits = b.clamp(bits, least, most)
    return b.select(x.differs(x), x, b.bitcast(bits, x.element))

"""
Floats of 8 bits and less: their ranges, and conversions to them that saturate or round in another direction.

`SEMANTICS` of its type says what each of them is: widths of exponent and mantissa, bias, whether there are signs, zeros
and infinities, and which codes are NaN. An `arith.truncf` rounds to the nearest, ties to even, and gives what the type
has for a number beyond its range: an infinity, else NaN, or the largest number where there is neither, and 0 for NaN.
With `f8E8M0FNU`, whose numbers are powers of two, halves round up, and what is below the smallest one is NaN.
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
"""Float → the integer of its bits, and how many of these are its mantissa."""


def semantics_of(element: Attribute) -> FloatSemantics:
    """What the codes of a narrow float stand for."""
    return cast(ReducedPrecisionFloatType, element).SEMANTICS


def largest_code(semantics: FloatSemantics) -> int:
    """The code of the largest finite number."""
    top = (1 << semantics.exponent_bits + semantics.mantissa_bits) - 1
    if semantics.nonfinite is FloatNonfiniteBehavior.IEEE:
        return top - (1 << semantics.mantissa_bits)
    has_nan = semantics.nonfinite is FloatNonfiniteBehavior.NAN_ONLY
    return top - (has_nan and semantics.nan_encoding is FloatNanEncoding.ALL_ONES)


def limits(element: Attribute) -> tuple[float, float]:
    """The smallest number of a narrow float, which is negative unless it has no sign, and the largest."""
    kind = cast(ReducedPrecisionFloatType, element)
    most = kind.decode_bits(largest_code(kind.SEMANTICS))
    return -most if kind.SEMANTICS.has_sign else kind.decode_bits(0), most


def is_power_of_two(element: Attribute) -> bool:
    """Whether the numbers of a narrow float are powers of two, as those of `f8E8M0FNU`."""
    return not semantics_of(element).has_zero


def narrowed(b: ScalarBuilder, x: Scalar, to: Attribute, saturate: bool, round_mode: str) -> Scalar:
    """
    A number as a narrow float, rounded once; with `saturate`, one beyond the range becomes the end of it.

    `round_mode` is one of `ROUND_MODES`, and for powers of two.
    """
    number = b.as_float(x)
    if is_power_of_two(to):
        number = _power_of_two(b, number, limits(to), saturate, round_mode)
    elif saturate and semantics_of(to).nonfinite is not FloatNonfiniteBehavior.FINITE_ONLY:
        number = b.clamp(number, *limits(to))
    return b.convert(number, to)


def _power_of_two(b: ScalarBuilder, x: Scalar, ends: tuple[float, float], saturate: bool, round_mode: str) -> Scalar:
    """
    A float as the next power of two in a direction, but for what is below all of them, and within them with `saturate`;
    NaN stays. Bits are compared instead of floats: the smallest power is denormal, which vectors may take for 0.
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
        # Numbers between `least` and twice of it have no power of two for an exponent where they are denormal.
        bits = b.maximum(b.binary("and", given, ~fraction), b.minimum(given, least))
    if saturate:
        bits = b.clamp(bits, least, most)
    return b.select(x.differs(x), x, b.bitcast(bits, x.element))

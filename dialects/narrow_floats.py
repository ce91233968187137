"""
Floats of 8 bits and less: their ranges, and conversions to them that saturate or round in another direction.

`SEMANTICS` of its type says what each of them is: widths of exponent and mantissa, bias, whether there are signs, zeros
and infinities, and which codes are NaN. An `arith.truncf` rounds to the nearest, ties to even, and gives what the type
has for a number beyond its range: an infinity, else NaN, or the largest number where there is neither, and 0 for NaN.
With `f8E8M0FNU`, whose numbers are powers of two, halves round up, and what is below the smallest one is NaN.
"""

from __future__ import annotations

from typing import cast

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
    if round_mode != "nearest":
        number = _power_of_two(b, number, limits(to)[0], round_mode)
    if saturate and semantics_of(to).nonfinite is not FloatNonfiniteBehavior.FINITE_ONLY:
        number = b.clamp(number, *limits(to))
    return b.convert(number, to)


def _power_of_two(b: ScalarBuilder, x: Scalar, least: float, round_mode: str) -> Scalar:
    """A float as the next power of two in a direction, but for what is below `least`, which stays; NaN stays."""
    integer, mantissa = _MANTISSAS[x.element]
    fraction = (1 << mantissa) - 1
    bits = b.bitcast(x, integer)
    if round_mode == "up":
        power = b.bitcast(b.binary("and", bits + fraction, ~fraction), x.element)
        return b.select(x > least, power, x)
    power = b.bitcast(b.binary("and", bits, ~fraction), x.element)
    # Numbers between `least` and twice of it have no power of two for an exponent where they are denormal.
    return b.maximum(power, b.minimum(x, least))

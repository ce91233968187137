"""Properties of float formats that mathematical functions need, and the small steps that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64, i32, i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.builder.x86 import scale_by_instruction
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class FloatFormat:
    """
    A binary float format.

    `mantissa` counts the stored bits. Adding `magic`, 1.5 times 2 to that power, to a small number rounds it to an
    integer, which then stands in the low bits: no conversion instruction, and nothing undefined for a NaN.
    """

    type: Attribute
    integer: Attribute
    mantissa: int
    bias: int

    @property
    def magic(self) -> float:
        """The number whose unit in the last place is one."""
        return 1.5 * 2.0**self.mantissa

    @property
    def smallest_normal(self) -> float:
        """The smallest number that is not denormal."""
        return 2.0 ** (1 - self.bias)


FORMATS = {32: FloatFormat(f32, i32, 23, 127), 64: FloatFormat(f64, i64, 52, 1023)}

Function = Callable[[Builder, Value], Value]


def format_of(x: Value) -> FloatFormat:
    """Return the format of a float or vector of floats. Raises `KeyError` unless it has 32 or 64 bits."""
    return FORMATS[x.info.bits]


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """Return the polynomial in `x` with these coefficients, the constant one first (Horner's scheme)."""
    result = b.constant(coefficients[-1], x.type)
    for coefficient in reversed(coefficients[:-1]):
        result = b.fma(result, x, coefficient)
    return result


def polynomial_by_pairs(b: Builder, x: Value, square: Value, coefficients: Sequence[float]) -> Value:
    """
    Return the result of `polynomial`, given the square of `x`: as many operations, in chains half as long (Estrin).
    """
    pairs = [coefficients[start : start + 2] for start in range(0, len(coefficients), 2)]
    terms = [polynomial(b, x, pair) for pair in pairs]
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = b.fma(result, square, term)
    return result


class Integer(NamedTuple):
    """An integer in two forms: as a float, and in the low bits of a float."""

    number: Value
    shifted: Value


def nearest_integer(b: Builder, x: Value, factor: float = 1.0) -> Integer:
    """Return `x * factor` rounded to an integer."""
    magic = format_of(x).magic
    shifted = x + magic if factor == 1.0 else b.fma(x, factor, magic)
    return Integer(shifted - magic, shifted)


def power_of_two(b: Builder, shifted: Value) -> Value:
    """Return two to the integer in the low bits of `shifted`; it must be the exponent of a normal number."""
    return _power_of_bits(b, b.bits_of(shifted), format_of(shifted))


def inverse_power_of_two(b: Builder, shifted: Value) -> Value:
    """Return two to the negative of the integer in the low bits of `shifted`, see `power_of_two`."""
    form = format_of(shifted)
    return b.bitcast((form.bias << form.mantissa) - (b.bits_of(shifted) << form.mantissa), form.type)


def _power_of_bits(b: Builder, exponent: Value, form: FloatFormat) -> Value:
    """Return two to the integer in the low bits of an integer, whose other bits are ignored."""
    return b.bitcast((exponent << form.mantissa) + (form.bias << form.mantissa), form.type)


def scale(b: Builder, x: Value, exponent: Integer) -> Value:
    """Return `x` times two to an integer, correct up to infinity and down into the denormal numbers."""
    if b.target.scaling and x.lanes * x.info.bits >= 128:
        return scale_by_instruction(b, x, exponent.number)
    # Both factors are normal even where their product is not; only the second multiplication rounds.
    bits = b.bits_of(exponent.shifted)
    first = bits >> 1
    form = format_of(x)
    return x * _power_of_bits(b, first, form) * _power_of_bits(b, bits - first, form)


def clamp_keeping_nan(b: Builder, x: Value, low: float, high: float) -> Value:
    """Return `x` clamped to a range; a NaN stays."""
    return b.max(low, b.min(high, x))


def keep_tiny(b: Builder, x: Value, result: Value) -> Value:
    """Return `result`, but `x` itself where that is denormal: -0 keeps its sign, and the last bit is exact."""
    return b.select(b.fabs(x) < format_of(x).smallest_normal, x, result)


def is_negative(b: Builder, x: Value) -> Value:
    """Return whether the sign bit is set, of zeros and NaNs as well."""
    return b.bits_of(x) < 0


INFINITY = math.inf
NAN = math.nan

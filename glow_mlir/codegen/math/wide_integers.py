"""Conversions between floats and integers of 64 bits; on machines without them, by halves of 32 bits."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, i32, i64, type_info
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.lanewise import each_lane
from glow_mlir.codegen.math.pairs import Pair, exact_sum, sum_to_odd

_DIGITS = (1 << 24) - 1
_WORD = (1 << 32) - 1
_HALF = 2.0**32
_i128 = IntegerType(128)


def _is_native(b: Builder, integer: Attribute) -> bool:
    return type_info(integer).bits < 64 or b.target.wide_integers


def to_float(b: Builder, x: Value, element: Attribute, signed: bool) -> Value:
    """Return integers as floats, rounded to the nearest, ties to even."""
    if _is_native(b, x.info.element):
        return b.cast(x, element, signed=signed)

    def convert(lane: Value) -> Value:
        return _scalar_to_float(b, lane, element, signed)

    return each_lane(b, convert, x)


def _scalar_to_float(b: Builder, x: Value, element: Attribute, signed: bool) -> Value:
    if element != f32:
        # Both halves are exact, and so is the product.
        high = b.cast(b.cast(_shifted(b, x, 32, signed), i32), element, signed=signed)
        return high * _HALF + b.cast(b.cast(x, i32), element, signed=False)
    near, last = _parts(b, x, signed)
    # If three parts do not fit, the second sum shows on which side of the middle the exact sum is.
    return near.high + sum_to_odd(b, near.low, last)


def to_odd_f32(b: Builder, x: Value, signed: bool) -> Value:
    """Return integers of 32 or 64 bits as f32, rounded to odd if inexact, so that they can be rounded again."""

    def convert(lane: Value) -> Value:
        near, last = _parts(b, b.cast(lane, i64, signed=signed), signed)
        return sum_to_odd(b, near.high, sum_to_odd(b, near.low, last))

    return each_lane(b, convert, x)


def _parts(b: Builder, x: Value, signed: bool) -> tuple[Pair, Value]:
    """Return an i64 as a sum of floats: the first 48 bits as a pair, and the last 16."""
    parts = (_shifted(b, x, 40, signed), b.lshr(x, 16) & _DIGITS, x & 0xFFFF)
    first, second, last = (b.cast(b.cast(part, i32), f32) for part in parts)
    return exact_sum(first * 2.0**40, second * 2.0**16), last


def _shifted(b: Builder, x: Value, by: int, signed: bool) -> Value:
    return b.ashr(x, by) if signed else b.lshr(x, by)


def wide_product(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Return the upper and the lower half of the product of two unsigned i64."""
    if b.target.wide_products:
        product = b.cast(x, _i128, signed=False) * b.cast(y, _i128, signed=False)
        return b.cast(b.lshr(product, 64), i64), b.cast(product, i64)
    (x_low, x_high), (y_low, y_high) = ((value & _WORD, b.lshr(value, 32)) for value in (x, y))
    low = x_low * y_low
    first = x_low * y_high + b.lshr(low, 32)
    second = x_high * y_low + (first & _WORD)
    return x_high * y_high + b.lshr(first, 32) + b.lshr(second, 32), (second << 32) | (low & _WORD)


def to_integer_saturating(b: Builder, x: Value, element: Attribute, signed: bool) -> Value:
    """Return floats as integers, towards zero, clamped to the range of the type; NaN gives 0."""
    native = _is_native(b, element)
    # LLVM widens elements of vectors that do not fill a register to 64 bits.
    if b.target.wide_integers or (native and x.lanes * x.info.bits >= b.target.vector_bits):
        return b.to_int_saturating(x, element, signed=signed)

    def convert(lane: Value) -> Value:
        return b.to_int_saturating(lane, element, signed=signed) if native else _scalar_to_integer(b, lane, signed)

    return each_lane(b, convert, x)


def _scalar_to_integer(b: Builder, x: Value, signed: bool) -> Value:
    limit = 2.0**63 if signed else 2.0**64
    magnitude = b.truncate(b.fabs(x) if signed else b.max(x, 0.0))
    inside = magnitude < limit
    number = b.select(inside, magnitude, 0.0)
    upper = b.truncate(number * (1 / _HALF))
    words = (b.cast(b.cast(half, i32, signed=False), i64, signed=False) for half in (upper, number - upper * _HALF))
    high, low = words
    result = (high << 32) | low
    largest = b.constant((1 << 63) - 1 if signed else -1, i64)
    result = b.select(inside, result, b.select(b.compare("uno", x, x), b.constant(0, result.type), largest))
    if not signed:
        return result
    negative = b.select(inside, -result, b.select(b.compare("uno", x, x), result, ~largest))
    return b.select(x < 0.0, negative, result)

"""
Numbers with twice the digits: the unevaluated sum of two floats, the second of which is the rounding error of the
first.

With f64 they have 106 bits; with f32, on machines without f64, they have 48 bits (Dekker 1971, Knuth, Joldes and others
2017). Results are wrong where a product underflows, which loses digits, or overflows, which makes the second part NaN:
callers avoid both, or select other results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.float_format import format_of


class Pair(NamedTuple):
    """The sum of two floats; the second is at most half a unit in the last place of the first."""

    high: Value
    low: Value


def exact_sum(x: Value, y: Value) -> Pair:
    """Return the rounded sum of two floats and its rounding error, exactly (Knuth's TwoSum)."""
    total = x + y
    back = total - x
    return Pair(total, (x - (total - back)) + (y - back))


def ordered_sum(large: Value, small: Value) -> Pair:
    """Return the result of `exact_sum` if the first number is not the smaller one, or is zero (Dekker's FastTwoSum)."""
    total = large + small
    return Pair(total, small - (total - large))


def sum_to_odd(b: Builder, x: Value, y: Value) -> Value:
    """Return the sum of two floats, rounded to odd: its last bit is set if anything is lost (by Knuth's TwoSum)."""
    total, lost = exact_sum(x, y)
    bits = b.bits_of(total)
    outward = b.compare("gt", lost, 0.0).eq(b.compare("gt", total, 0.0))
    is_moved = b.and_(b.compare("one", lost, 0.0), (bits & 1).eq(0))
    moved = b.select(is_moved, b.select(outward, bits + 1, bits - 1), bits)
    return b.bitcast(moved, total.info.element)


def product_and_error(b: Builder, x: Value, y: Value) -> Pair:
    """Return the rounded product of two floats and its rounding error, exactly."""
    product = x * y
    if b.target.fuses(x.info.bits):
        return Pair(product, b.fma(x, y, -product))
    # Halves of the digits have exact products (Dekker 1971).
    x_high, x_low = _halves(b, x)
    y_high, y_low = _halves(b, y)
    return Pair(product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low)


def remainder(b: Builder, dividend: Value, quotient: Value, divisor: Value) -> Value:
    """Return `dividend - quotient * divisor`, exactly, for a rounded quotient, or for a root as both of its factors."""
    if b.target.fuses(dividend.info.bits):
        return b.fma(-quotient, divisor, dividend)
    product, error = product_and_error(b, quotient, divisor)
    return (dividend - product) - error


def _halves(b: Builder, x: Value) -> tuple[Value, Value]:
    """Split a float into the first half of its bits, rounded, and the rest; in integers, so that nothing overflows."""
    form = format_of(x)
    rest = form.mantissa // 2 + 1
    high = b.bitcast((b.bits_of(x) + (1 << rest - 1)) & -(1 << rest), form.type)
    return high, x - high


def constant_pair(b: Builder, value: tuple[float, float], like: Value) -> Pair:
    """Return a number that is given in two parts."""
    return Pair(b.constant(value[0], like.type), b.constant(value[1], like.type))


def add(p: Pair, q: Pair) -> Pair:
    """Return the sum of two pairs, accurate to two units in the last place if they do not cancel."""
    total, error = exact_sum(p.high, q.high)
    return ordered_sum(total, error + (p.low + q.low))


def multiply(b: Builder, p: Pair, q: Pair) -> Pair:
    """Return the product of two pairs, accurate to a few units in the last place."""
    product, error = product_and_error(b, p.high, q.high)
    return ordered_sum(product, b.fma(p.low, q.high, b.fma(p.high, q.low, error)))


def divide(b: Builder, p: Pair, q: Pair) -> Pair:
    """Return the quotient of two pairs, accurate to a few units in the last place."""
    quotient = p.high / q.high
    rest = remainder(b, p.high, quotient, q.high) + (p.low - quotient * q.low)
    return ordered_sum(quotient, rest / q.high)


def negated(p: Pair) -> Pair:
    """Return the number with the other sign."""
    return Pair(-p.high, -p.low)


def select(b: Builder, condition: Value, p: Pair, q: Pair) -> Pair:
    """Return the first pair where a condition holds, else the second."""
    return Pair(b.select(condition, p.high, q.high), b.select(condition, p.low, q.low))


def polynomial_of_pair(b: Builder, x: Pair, leading: Sequence[tuple[float, float]], further: Sequence[float]) -> Pair:
    """
    Return a polynomial with the coefficients `leading`, in two parts each, and `further`, the constant one first.

    The further terms are so small compared with the others that they are computed in single floats.
    """
    rest = b.constant(further[-1], x.high.type)
    for coefficient in reversed(further[:-1]):
        rest = b.fma(rest, x.high, coefficient)
    product, error = product_and_error(b, rest, x.high)
    constants = [constant_pair(b, coefficient, x.high) for coefficient in leading]
    result = ordered_sum(constants[-1].high, product)
    result = ordered_sum(result.high, result.low + (error + constants[-1].low))
    for constant in reversed(constants[:-1]):
        result = add(constant, multiply(b, result, x))
    return result

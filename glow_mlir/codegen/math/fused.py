"""The fused multiply-add of f32, rounded once on every target."""

from __future__ import annotations

import math

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.pairs import exact_sum, product_and_error


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """
    Return `x * y + z`; f32 is rounded once, wider numbers as often as the target does.

    Without an instruction for it, the product is exact in f64, and the sum is rounded to odd, so that the second
    rounding is as if there had been no first one. Without f64, the product is exact as a pair if it is not below
    2⁻¹⁰², and all but the leading part of the sum is rounded to odd (Boldo and Melquiond 2008).
    """
    if b.target.fma or x.info.element != f32:
        return b.fma(x, y, z)
    if b.target.doubles:
        return b.cast(sum_to_odd(b, b.cast(x, f64) * b.cast(y, f64), b.cast(z, f64)), f32)
    product, error = product_and_error(b, x, y)
    addend, first_rest = exact_sum(z, error)
    total, second_rest = exact_sum(product, addend)
    fused = total + sum_to_odd(b, first_rest, second_rest)
    return b.select(b.fabs(fused) < math.inf, fused, x * y + z)


def sum_to_odd(b: Builder, x: Value, y: Value) -> Value:
    """Return the sum of two floats, whose last bit is made odd where something is lost (by Knuth's TwoSum)."""
    total, lost = exact_sum(x, y)
    bits = b.bits_of(total)
    outward = b.compare("gt", lost, 0.0).eq(b.compare("gt", total, 0.0))
    is_moved = b.and_(b.compare("one", lost, 0.0), (bits & 1).eq(0))
    moved = b.select(is_moved, b.select(outward, bits + 1, bits - 1), bits)
    return b.bitcast(moved, total.info.element)

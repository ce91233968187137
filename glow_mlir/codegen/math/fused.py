"""The fused multiply-add of f32, rounded once on every target."""

from __future__ import annotations

import math

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.pairs import exact_sum, product_and_error, sum_to_odd


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """
    Return `x * y + z`; f32 is rounded once, wider numbers as often as on the target.

    Without an instruction for it, the product is exact in f64, and the sum is rounded to odd, so that rounding it again
    gives the correct result. Without f64, the product is exact as a pair if it is not below 2⁻¹⁰², and all but the
    leading part of the sum is rounded to odd (Boldo and Melquiond 2008).
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

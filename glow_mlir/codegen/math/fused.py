"""The fused multiply-add of f32, rounded once on every target."""

from __future__ import annotations

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64
from glow_mlir.codegen.builder.value import Value


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """
    Return `x * y + z`; f32 is rounded once, wider numbers as often as the target does.

    Without an instruction for it, the product is exact in f64, and what the sum loses (Knuth's TwoSum) makes its last
    bit odd, so that the second rounding is as if there had been no first one.
    """
    if b.target.fma or x.info.element != f32:
        return b.fma(x, y, z)
    product, addend = b.cast(x, f64) * b.cast(y, f64), b.cast(z, f64)
    total = product + addend
    shift = total - product
    lost = (product - (total - shift)) + (addend - shift)
    bits = b.bits_of(total)
    outward = b.compare("gt", lost, 0.0).eq(b.compare("gt", total, 0.0))
    is_moved = b.and_(b.compare("one", lost, 0.0), (bits & 1).eq(0))
    moved = b.select(is_moved, b.select(outward, bits + 1, bits - 1), bits)
    return b.cast(b.bitcast(moved, total.info.element), f32)

"""
16-bit floats, f16 and bf16, which are stored in 16 bits and computed in f32.

Sums, products, quotients and roots that are computed in f32 and then rounded to 16 bits are correctly rounded: f32 has
more than twice the digits of these formats. Conversions of f16 use integer arithmetic on targets without an instruction
for them; conversions of bf16, which is the upper half of an f32, do so on all targets.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, FloatSemantics
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import bf16, f16, f32, i16, i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.float_bits import decoded, encoded
from glow_mlir.dialects.element_types import is_unsigned, signless

_F16 = FloatSemantics(exponent_bits=5, mantissa_bits=10, exponent_bias=15)
_QUIET = 0x00400000
"""The first digit of an f32, which marks a NaN as quiet."""


def is_half(element: Attribute) -> bool:
    """Whether an element is stored as f16 or bf16, and computed in f32."""
    return isinstance(element, Float16Type | BFloat16Type)


def widen(b: Builder, x: Value) -> Value:
    """Return an f16 or bf16 as f32, exactly."""
    is_f16 = isinstance(x.info.element, Float16Type)
    if is_f16 and b.target.halves:
        return b.cast(x, f32)
    bits = b.cast(b.bitcast(x, i16), i32, signed=False)
    return decoded(b, bits, _F16) if is_f16 else b.bitcast(bits << 16, f32)


def loaded_as(element: Attribute) -> Attribute:
    """
    The type in which an element is loaded: an integer for 16-bit floats, since LLVM moves parts of its vectors as they
    are.
    """
    return i16 if is_half(element) else signless(element)


def to_accumulators(b: Builder, x: Value, element: Attribute, accumulators: Attribute) -> Value:
    """Return elements, as they were loaded, in the type of their products' accumulators, exactly."""
    if is_half(element):
        return widen(b, b.bitcast(x, element))
    return b.cast(x, accumulators, signed=not is_unsigned(element))


def narrow(b: Builder, x: Value, element: Attribute) -> Value:
    """Return an f32 as `element`, f16 or bf16, rounded to the nearest, ties to even."""
    if isinstance(element, BFloat16Type):
        return _narrow_bf16(b, x)
    if b.target.halves:
        return b.cast(x, f16)
    return b.bitcast(b.cast(encoded(b, x, _F16), i16), f16)


def _narrow_bf16(b: Builder, x: Value) -> Value:
    """The upper half of an f32, rounded; a NaN gets a digit there, or it would become infinite."""
    bits = b.bits_of(x)
    nearest = bits + 0x7FFF + (b.lshr(bits, 16) & 1)
    upper = b.lshr(b.select(b.compare("uno", x, x), bits | _QUIET, nearest), 16)
    return b.bitcast(b.cast(upper, i16), bf16)


def rounded(b: Builder, x: Value, element: Attribute) -> Value:
    """Return an f32 rounded to the digits and the range of `element`, f16 or bf16."""
    return widen(b, narrow(b, x, element))


def narrow_double(b: Builder, x: Value) -> Value:
    """
    Return an f64 as f32, ready for `narrow`, which rounds a second time: the last digit records whether anything was
    lost.

    This is rounding to odd: towards zero, and the last bit is set unless the result is exact.
    """
    near = b.cast(x, f32)
    back = b.cast(near, x.info.element)
    bits = b.bits_of(near)
    beyond = b.cast(b.fabs(back) > b.fabs(x), i32)
    inexact = back.ne(x) & b.compare("ord", x, x)
    return b.bitcast(b.select(inexact, (bits - beyond) | 1, bits), f32)

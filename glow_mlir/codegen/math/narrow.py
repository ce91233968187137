"""
Elements of less than 16 bits in machine code: a byte in memory, and a type with arithmetic in bodies.

Floats are held as f32, integers of 2 and 4 bits as bytes whose upper bits are undefined until they are converted.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import bf16, f32, i8, i16, i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.float_bits import decoded, encoded
from glow_mlir.codegen.math.half import is_half, narrow, widen
from glow_mlir.dialects.element_types import is_narrow, is_narrow_float, is_narrow_integer, number_width, signless
from glow_mlir.dialects.narrow_floats import semantics_of


def in_memory(element: Attribute) -> Attribute:
    """The type in which memory has an element: a byte if it has less than 16 bits."""
    return i8 if is_narrow(element) else signless(element)


def loaded(element: Attribute) -> Attribute:
    """The type in which bodies load an element: bf16 as an integer, since LLVM does not compute with bfloat."""
    return i16 if element == bf16 else in_memory(element)


def is_held_as_f32(element: Attribute) -> bool:
    """Whether an element is stored with fewer bits than the f32 in which bodies hold it."""
    return is_half(element) or is_narrow_float(element)


def held(element: Attribute) -> Attribute:
    """
    The type in which a body holds an element: f32 for narrower floats, a byte for narrower integers, else its own.
    """
    if is_held_as_f32(element):
        return f32
    return i8 if is_narrow_integer(element) else element


def from_memory(b: Builder, x: Value, element: Attribute) -> Value:
    """Convert loaded elements to the type in which bodies hold them, exactly."""
    if is_narrow_float(element):
        return decoded(b, b.cast(x, i32, signed=False), semantics_of(element))
    return widen(b, x) if is_half(element) else x


def to_memory(b: Builder, x: Value, element: Attribute) -> Value:
    """Convert a result of a body to the type in memory: floats are rounded to the nearest, ties to even."""
    if is_narrow_float(element):
        return b.cast(encoded(b, x, semantics_of(element)), i8)
    return narrow(b, x, element) if is_half(element) else x


def extended(b: Builder, x: Value, element: Attribute, signed: bool) -> Value:
    """Extend integers of 2 or 4 bits to all bits of their bytes."""
    unused = 8 - number_width(element)
    return b.ashr(x << unused, unused) if signed else x & ((1 << 8 - unused) - 1)


def cut(b: Builder, x: Value, element: IntegerType) -> Value:
    """Wrap integers to 2 or 4 bits, in bytes whose upper bits are 0."""
    return b.cast(x, i8) & ((1 << element.bitwidth) - 1)

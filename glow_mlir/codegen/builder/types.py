"""
Types and small attributes of generated code, each created once: in xDSL they are expensive to create and to compare.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMArrayType, LLVMPointerType
from xdsl.ir import Attribute

from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import MAX_KEPT, kept_by_identity

__all__ = [
    "ALIGNMENTS",
    "NO_FAST_MATH",
    "TypeInfo",
    "array",
    "bf16",
    "f16",
    "f32",
    "f64",
    "i1",
    "i8",
    "i16",
    "i32",
    "i32_array",
    "i64",
    "index_type",
    "integer_of_width",
    "pointer_in",
    "ptr",
    "type_info",
    "vector",
]

ptr = LLVMPointerType()


@functools.cache
def pointer_in(space: int) -> LLVMPointerType:
    """Return the pointer type of an address space; 0 is the space of plain pointers."""
    return LLVMPointerType(IntAttr(space)) if space else ptr


index_type = IndexType()
"""
The type of extents, offsets and addresses; the builder replaces it by the integer as wide as the target's pointers.
"""
NO_FAST_MATH: Mapping[str, Attribute] = {"fastmathFlags": FastMathAttr(None)}
ALIGNMENTS = {1 << n: IntegerAttr(1 << n, i64) for n in range(13)}

_INTEGERS = {1: i1, 8: i8, 16: i16, 32: i32, 64: i64}
_FLOAT_BITS: dict[type[Attribute], int] = {
    Float16Type: 16,
    BFloat16Type: 16,
    Float32Type: 32,
    Float64Type: 64,
}


def integer_of_width(bits: int) -> IntegerType:
    """Return the signless integer type of a width."""
    return _INTEGERS.get(bits) or IntegerType(bits)


def vector(element: Attribute, lanes: int) -> Attribute:
    """
    Return the vector of `lanes` elements; one lane is the scalar itself, so that kernels need no second variant.
    """
    return element if lanes == 1 else _vectors(element)[lanes]


class _Vectors(dict[int, Attribute]):
    """Lanes → the vector type with that number of elements."""

    def __init__(self, element: Attribute) -> None:
        self._element = element

    def __missing__(self, lanes: int) -> Attribute:
        return self.setdefault(lanes, VectorType(self._element, [lanes]))


_of_equal = functools.cache(_Vectors)
_vectors = kept_by_identity(_of_equal)


@functools.lru_cache(MAX_KEPT)
def i32_array(*numbers: int) -> Attribute:
    """Return numbers as the attribute in which the dialect has masks, positions and segment sizes."""
    return DenseArrayBase.from_list(i32, numbers)


@functools.cache
def array(element: Attribute, count: int) -> LLVMArrayType:
    """Return the array type of `count` elements."""
    return LLVMArrayType(count, element)


@dataclass(frozen=True)
class TypeInfo:
    """
    The properties of a type that the builder needs; `lanes` is 1 for scalars, and `bits` is the width of one element.
    """

    element: Attribute
    lanes: int
    bits: int
    is_float: bool
    is_pointer: bool
    is_vector: bool

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of one element in memory; a bool takes a whole byte."""
        return max(8, self.bits) // 8


@kept_by_identity
def info_of(type_: Attribute) -> TypeInfo | None:
    """Return the properties of a scalar, vector or pointer type; None for an aggregate."""
    is_vector = isinstance(type_, VectorType)
    lanes = type_.get_shape()[0] if is_vector else 1
    element = cast("VectorType[Attribute]", type_).element_type if is_vector else type_
    if isinstance(element, IntegerType):
        return TypeInfo(cast("Attribute", element), lanes, element.bitwidth, False, False, is_vector)
    if isinstance(element, LLVMPointerType):
        return TypeInfo(element, lanes, 64, False, True, is_vector)
    if (bits := _FLOAT_BITS.get(type(element))) is not None:
        return TypeInfo(element, lanes, bits, True, False, is_vector)
    return None


def type_info(type_: Attribute) -> TypeInfo:
    """Return the properties of a scalar, vector or pointer type. Raises `TypeError` for any other type."""
    if (info := info_of(type_)) is not None:
        return info
    raise TypeError(f"'{type_}' is neither a number, nor a vector of numbers, nor a pointer")

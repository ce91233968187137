"""
Element types of tensors and buffers: their kinds, widths and numpy counterparts.

An element type has a storage type and an expressed type, which differ if it is quantized. Products also have an
accumulator type (see `product_types`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    ReducedPrecisionFloatType,
    Signedness,
    bf16,
    f4E2M1FN,
    f8E4M3FN,
    f8E4M3FNUZ,
    f8E5M2,
    f8E5M2FNUZ,
    f8E8M0FNU,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.support.identity import kept_by_identity

if TYPE_CHECKING:
    import numpy as np

ui8 = IntegerType(8, Signedness.UNSIGNED)
ui16 = IntegerType(16, Signedness.UNSIGNED)
ui32 = IntegerType(32, Signedness.UNSIGNED)
ui64 = IntegerType(64, Signedness.UNSIGNED)
i2, ui2 = IntegerType(2), IntegerType(2, Signedness.UNSIGNED)
i4, ui4 = IntegerType(4), IntegerType(4, Signedness.UNSIGNED)

NUMPY_NAMES: dict[Attribute, str] = {
    f32: "float32",
    f64: "float64",
    Float16Type(): "float16",
    bf16: "bfloat16",
    i1: "bool",
    i8: "int8",
    i16: "int16",
    i32: "int32",
    i64: "int64",
    ui8: "uint8",
    ui16: "uint16",
    ui32: "uint32",
    ui64: "uint64",
    f8E4M3FN: "float8_e4m3fn",
    f8E4M3FNUZ: "float8_e4m3fnuz",
    f8E5M2: "float8_e5m2",
    f8E5M2FNUZ: "float8_e5m2fnuz",
    f8E8M0FNU: "float8_e8m0fnu",
    f4E2M1FN: "float4_e2m1fn",
    i4: "int4",
    ui4: "uint4",
    i2: "int2",
    ui2: "uint2",
}
"""
Element type → name of the numpy dtype that stores it. Signless integers are signed. An element narrower than a byte
takes a byte, whose upper bits are undefined; those of an `i1` are 0.
"""

ELEMENT_TYPES: dict[str, Attribute] = {name: element for element, name in NUMPY_NAMES.items()}
"""Name of a numpy dtype → element type."""


FLOATS = frozenset((Float64Type, Float32Type, Float16Type, BFloat16Type))
"""The kinds of floating-point types that operators compute with."""


def storage_of(element: Attribute) -> Attribute:
    """The type of an element in memory: the integer type of a quantized element, otherwise the element type itself."""
    return element.storage if type(element) is UniformQuantizedType else element


def expressed_of(element: Attribute) -> Attribute:
    """The type of the numbers that elements represent: the float type of a quantized element, otherwise itself."""
    return element.expressed if type(element) is UniformQuantizedType else element


def is_storable(element: Attribute) -> bool:
    """Whether tensors and buffers may hold elements of this type."""
    return storage_of(element) in NUMPY_NAMES


@kept_by_identity
def numpy_dtype(element: Attribute) -> np.dtype:
    """The numpy dtype that stores `element`; raises `KeyError` for a type that no buffer holds."""
    from glow_mlir.support.dtypes import named_dtype

    return named_dtype(NUMPY_NAMES[storage_of(element)])


@cache
def element_type(dtype: np.dtype) -> Attribute:
    """The element type that a numpy dtype stores; raises `KeyError` for dtypes without one."""
    return ELEMENT_TYPES[dtype.name]


def _integer_type(element: Attribute) -> IntegerType[int, Signedness] | None:
    return element if type(element) is IntegerType else None


@kept_by_identity
def byte_width(element: Attribute) -> int:
    """Bytes that one element takes in memory, at least one."""
    if isinstance(element, ReducedPrecisionFloatType):
        return 1
    if (integer := _integer_type(element)) is not None:
        return max(1, integer.width.data // 8)
    if isinstance(element, Float16Type | BFloat16Type):
        return 2
    if isinstance(element, Float32Type):
        return 4
    if isinstance(element, Float64Type):
        return 8
    if isinstance(element, UniformQuantizedType):
        return byte_width(element.storage)
    raise KeyError(element)


def bit_width(element: Attribute) -> int:
    """Bits that one element takes in memory; a bool takes eight."""
    return 8 * byte_width(element)


def number_width(element: Attribute) -> int:
    """Significant bits of an element: 1 for a bool, 4 for an `i4`."""
    if isinstance(element, ReducedPrecisionFloatType):
        return element.bitwidth
    integer = _integer_type(storage_of(element))
    return bit_width(element) if integer is None else integer.width.data


VALUES_OF_A_BYTE = 256
"""The number of different 8-bit quantized values."""


@kept_by_identity
def is_narrow_float(element: Attribute) -> bool:
    """Whether `element` is a float of 8 bits or less: stored and converted, but not computed with."""
    return isinstance(element, ReducedPrecisionFloatType)


def is_narrow_integer(element: Attribute) -> bool:
    """Whether `element` is an integer of 2 or 4 bits: stored and converted, but not computed with."""
    integer = _integer_type(element)
    return integer is not None and 1 < integer.width.data < 8


def is_narrow(element: Attribute) -> bool:
    """Whether elements are narrow floats or integers: stored and converted, but not computed with."""
    return is_narrow_float(element) or is_narrow_integer(element)


def is_float(element: Attribute) -> bool:
    """Whether `element` is a floating-point type of 16 bits or more, which operators compute with."""
    return type(element) in FLOATS


def is_bool(element: Attribute) -> bool:
    """Whether `element` is the truth type `i1`."""
    return element == i1


@kept_by_identity
def is_integer(element: Attribute) -> bool:
    """Whether `element` is an integer of 8 bits or more, which operators compute with."""
    integer = _integer_type(element)
    return integer is not None and integer.width.data >= 8


def is_scalar(element: Attribute) -> bool:
    """Whether `element` is a number or truth value that bodies compute with, and is not quantized."""
    return element in NUMPY_NAMES and not is_narrow(element)


def is_element(element: Attribute) -> bool:
    """Whether `element` is a number or truth value of any width, and is not quantized."""
    return element in NUMPY_NAMES


def is_unsigned(element: Attribute) -> bool:
    """Whether `element` is an unsigned integer; bools count as unsigned."""
    integer = _integer_type(element)
    return integer is not None and (integer.signedness.data == Signedness.UNSIGNED or integer.width.data == 1)


def signless(element: Attribute) -> Attribute:
    """The type in which `arith` computes on `element`: signless for integers and quantized values, otherwise itself."""
    integer = _integer_type(storage_of(element))
    return element if integer is None else _signless(integer.width.data)


@cache
def _signless(width: int) -> IntegerType[int, Signedness]:
    """The signless integer type of that width, cached."""
    return IntegerType(width)

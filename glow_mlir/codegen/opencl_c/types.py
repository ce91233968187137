"""Types of the `llvm` dialect in OpenCL C, and vectors as pieces of the sizes that exist there."""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.types import TypeInfo, info_of
from glow_mlir.codegen.llvm.text import EmissionError

_UNSIGNED = {1: "bool", 8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
_SIGNED = {8: "char", 16: "short", 32: "int", 64: "long"}

_FLOATS: dict[type[Attribute], str] = {
    Float16Type: _UNSIGNED[16],
    BFloat16Type: _UNSIGNED[16],
    Float32Type: "float",
    Float64Type: "double",
}

_SIZES = (16, 8, 4, 2, 1)
"""The numbers of lanes of vectors in OpenCL C, except three, which takes the memory of four."""


def info(type_: Attribute) -> TypeInfo:
    """The properties of a type; raises `EmissionError` for an aggregate."""
    if (found := info_of(type_)) is not None:
        return found
    raise EmissionError(f"the type '{type_}' has no counterpart in OpenCL C")


def element_name(element: Attribute) -> str:
    """
    An element type in OpenCL C: integers are unsigned, so that they wrap, and 16-bit floats are their bits.

    Raises `EmissionError` for a type that has no counterpart.
    """
    if isinstance(element, IntegerType):
        name = _UNSIGNED.get(element.bitwidth)
    else:
        name = _FLOATS.get(type(element))
    if name is not None:
        return name
    raise EmissionError(f"the type '{element}' has no counterpart in OpenCL C")


def signed_name(bits: int) -> str:
    """The signed integer type of a width, which masks of vectors have as well."""
    return _SIGNED[bits]


def unsigned_name(bits: int) -> str:
    """The unsigned integer type of a width."""
    return _UNSIGNED[bits]


def of_lanes(name: str, lanes: int) -> str:
    """The vector type with `lanes` lanes; the element type itself for one lane."""
    return name if lanes == 1 else f"{name}{lanes}"


def piece_sizes(lanes: int) -> tuple[int, ...]:
    """The lanes of the pieces of a vector, the largest first."""
    sizes: list[int] = []
    for size in _SIZES:
        while lanes >= size:
            sizes.append(size)
            lanes -= size
    return tuple(sizes)

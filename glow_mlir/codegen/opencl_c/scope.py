"""The interface between rules and the function that they write: names, types, lanes, and surrounding statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.dialects.builtin import VectorType
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import SSAValue

from glow_mlir.codegen.opencl_c.types import info, of_lanes, piece_sizes, signed_name

LANES = "0123456789abcdef"
"""The names of lanes."""

Pieces = Sequence[str]
"""A value as text, one for each piece; scalars and most vectors have one piece."""


class Scope(Protocol):
    """A function that is being written."""

    spaces: dict[SSAValue, str]
    """The address space of each pointer."""
    mask_bits: dict[SSAValue, int]
    """The width of the lanes of a vector of truth values, each 0 or -1."""

    def pieces(self, value: SSAValue, /) -> Pieces:
        """A value as text."""
        ...

    def line(self, text: str, /) -> None:
        """Write a statement."""
        ...

    def access_type(self, name: str, align: int, /) -> str:
        """The type of accesses to memory with that alignment."""
        ...

    def callee(self, name: str, spaces: Sequence[str], /) -> str:
        """The name of a function for pointers in those address spaces."""
        ...

    def table(self, name: str, /) -> str:
        """The name of a table of the module."""
        ...

    def fresh(self) -> str:
        """A name that is not in use."""
        ...


def lanes_of(value: SSAValue) -> int:
    """The number of lanes of a value; 1 for a scalar or pointer."""
    return value.type.get_shape()[0] if isinstance(value.type, VectorType) else 1


def is_vector(value: SSAValue) -> bool:
    """Whether a value is a vector, maybe of one lane."""
    return isinstance(value.type, VectorType)


def is_pointer(value: SSAValue) -> bool:
    """Whether a value is one pointer."""
    return isinstance(value.type, LLVMPointerType)


def is_mask(value: SSAValue) -> bool:
    """Whether a value is a vector of truth values."""
    return is_vector(value) and info(value.type).bits == 1


def lane(pieces: Pieces, lanes: int, number: int) -> str:
    """The text of one lane of a vector with `lanes` lanes."""
    for text, size in zip(pieces, piece_sizes(lanes), strict=True):
        if number < size:
            return text if size == 1 else f"{text}.s{LANES[number]}"
        number -= size
    raise IndexError(number)


def picked(scalars: Sequence[str | None], name: str, zero: str) -> list[str]:
    """A vector of elements of a type, made of scalars; `None` is arbitrary."""
    found: list[str] = []
    start = 0
    for size in piece_sizes(len(scalars)):
        part = [scalar or zero for scalar in scalars[start : start + size]]
        start += size
        found.append(part[0] if size == 1 else _together(part, name))
    return found


def _together(scalars: Sequence[str], name: str) -> str:
    """
    Scalars as a vector: lanes of another vector if all come from it, or one scalar for all lanes if they are equal.
    """
    type_ = of_lanes(name, len(scalars))
    if len(set(scalars)) == 1:
        return f"({type_})({scalars[0]})"
    bases = {scalar.rpartition(".s")[0] for scalar in scalars}
    if len(bases) == 1 and "" not in bases and all(len(scalar.rpartition(".s")[2]) == 1 for scalar in scalars):
        return f"{bases.pop()}.s{''.join(scalar[-1] for scalar in scalars)}"
    return f"({type_})({', '.join(scalars)})"


def resized_mask(scope: Scope, value: SSAValue, bits: int) -> list[str]:
    """A vector of truth values with lanes of `bits` bits."""
    if scope.mask_bits[value] == bits:
        return list(scope.pieces(value))
    sizes = piece_sizes(lanes_of(value))
    return [converted(text, signed_name(bits), size) for text, size in zip(scope.pieces(value), sizes, strict=True)]


def converted(text: str, name: str, lanes: int) -> str:
    """A number, or a vector, converted to elements of another type."""
    return f"({name})({text})" if lanes == 1 else f"CONVERT({of_lanes(name, lanes)}, {text})"


def same_bits(text: str, type_: str) -> str:
    """The bits of a value as another type of the same size."""
    return f"as_{type_}({text})"

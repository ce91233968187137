"""Constants of the `llvm` dialect as literals of OpenCL C."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute

from glow_mlir.codegen.llvm.text import EmissionError, bfloat_bits, half_bits
from glow_mlir.codegen.opencl_c.types import element_name

_SUFFIXES = {32: "u", 64: "ul"}


def integer_literal(value: int, bits: int) -> str:
    """An integer as the unsigned number with the same bits; a truth value if it has one bit."""
    if bits == 1:
        return "true" if value & 1 else "false"
    number = value & ((1 << bits) - 1)
    if bits in _SUFFIXES:
        return f"{number}{_SUFFIXES[bits]}"
    return f"(u{'char' if bits == 8 else 'short'}){number}"


def float_literal(value: float, element: Attribute) -> str:
    """A float, exactly; one of 16 bits as its bits."""
    if isinstance(element, Float16Type):
        return integer_literal(half_bits(value), 16)
    if isinstance(element, BFloat16Type):
        return integer_literal(bfloat_bits(value), 16)
    is_double = isinstance(element, Float64Type)
    if not math.isfinite(value):
        code, bits = ("<d", 64) if is_double else ("<f", 32)
        pattern = int.from_bytes(struct.pack(code, value), "little")
        return f"as_{element_name(element)}({integer_literal(pattern, bits)})"
    single = value if is_double else struct.unpack("<f", struct.pack("<f", value))[0]
    digits = f"{single:.17g}" if is_double else f"{single:.9g}"
    text = digits if "." in digits or "e" in digits else f"{digits}.0"
    return text if is_double else f"{text}f"


def element_literal(value: float, element: Attribute) -> str:
    """One number of an element type."""
    if isinstance(element, IntegerType):
        return integer_literal(int(value), element.bitwidth)
    return float_literal(float(value), element)


def numbers_of(value: Attribute, count: int) -> Sequence[float]:
    """The numbers of a constant of `count` elements; raises `EmissionError` for other attributes."""
    match value:
        case IntegerAttr() | FloatAttr():
            return [value.value.data] * count
        case DenseIntOrFPElementsAttr():
            numbers = cast("Sequence[float]", value.get_values())
            return list(numbers) * count if len(numbers) == 1 else list(numbers)
        case _:
            raise EmissionError(f"the constant '{value}' is not translated")

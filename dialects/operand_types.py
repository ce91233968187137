"""Constraints of operands in operator definitions: element types, as in ONNX's constraints, and ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Self, cast

from typing_extensions import TypeVar
from xdsl.dialects.builtin import TensorType, f32, f64, i8, i16, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, IntConstraint, VerificationContext
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.element_types import (
    byte_width,
    is_bool,
    is_element,
    is_float,
    is_integer,
    is_scalar,
    storage_of,
    ui8,
    ui16,
)
from glow_mlir.dialects.shapes import MAX_AXES, element_of, rank_of
from glow_mlir.support.dataclass import dataclass


def _is_index(element: Attribute) -> bool:
    return element in (i32, i64)


def _is_number(element: Attribute) -> bool:
    return is_float(element) or is_integer(element)


def _is_factor(element: Attribute) -> bool:
    return _is_number(storage_of(element))


def _is_code(element: Attribute) -> bool:
    return is_integer(storage_of(element))


def _is_narrow_code(element: Attribute) -> bool:
    return _is_code(element) and byte_width(element) <= 2


def _is_summand(element: Attribute) -> bool:
    return _is_narrow_code(element) or element in (f32, f64, i32)


def _is_wide_float(element: Attribute) -> bool:
    return element in (f32, f64)


def _is(wanted: Attribute) -> Callable[[Attribute], bool]:
    return lambda element: element == wanted


def _is_anything(_: Attribute) -> bool:
    return True


@dataclass(frozen=True)
class TensorConstraint(AttrConstraint[TensorType[Attribute]]):
    """A tensor with elements of one kind, `noun` in messages, and with `least` to `most` axes."""

    noun: str
    accepts: Callable[[Attribute], bool]
    least: int = 0
    most: int = MAX_AXES

    def of_rank(self, rank: int) -> Self:
        """The same with exactly that many axes."""
        return replace(self, least=rank, most=rank)

    def from_rank(self, rank: int) -> Self:
        """The same with that many axes or more."""
        return replace(self, least=rank)

    def fault(self, type_: Attribute) -> str:
        """The error for the type of an operand, a tensor or a buffer; empty if it fits."""
        if not self.accepts(element := element_of(type_)):
            return f"takes {self.noun}, not {element}"
        rank = rank_of(type_)
        if self.least <= rank <= self.most:
            return ""
        if rank > MAX_AXES:
            return f"has at most {MAX_AXES} axes, not {rank}"
        return f"takes {self.least}{' axes' if self.most == self.least else ' axes or more'}, not {rank}"

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if not isinstance(attr, TensorType):
            raise VerifyException(f"takes a tensor, not {attr}")
        if fault := self.fault(cast(Attribute, attr)):
            raise VerifyException(fault)

    def mapping_type_vars(self, type_var_mapping: Mapping[TypeVar, AttrConstraint[Attribute] | IntConstraint]) -> Self:
        return self


TENSOR = TensorConstraint("anything", _is_anything)
"""Any tensor, for operators that only move elements."""
FACTORS = TensorConstraint("numbers and quantized elements", _is_factor)
ELEMENTS = TensorConstraint("numbers and truth values of any width", is_element)
SCALARS = TensorConstraint("numbers and truth values", is_scalar)
NUMBERS = TensorConstraint("numbers", _is_number)
FLOATS = TensorConstraint("floats", is_float)
INTEGERS = TensorConstraint("integers", is_integer)
WIDE_FLOATS = TensorConstraint("f32 or f64", _is_wide_float)
BOOLS = TensorConstraint("truth values", is_bool)
INDICES = TensorConstraint("i32 or i64", _is_index)
QUANTIZED = TensorConstraint("quantized elements and integers", _is_code)
NARROW_QUANTIZED = TensorConstraint("quantized elements and integers of 8 or 16 bits", _is_narrow_code)
SUMMANDS = TensorConstraint("f32, f64, i32, and quantized elements and integers of 8 or 16 bits", _is_summand)
I8 = TensorConstraint("i8", _is(i8))
I16 = TensorConstraint("i16", _is(i16))
I32 = TensorConstraint("i32", _is(i32))
I64 = TensorConstraint("i64", _is(i64))
UI8 = TensorConstraint("ui8", _is(ui8))
UI16 = TensorConstraint("ui16", _is(ui16))
F32 = TensorConstraint("f32", _is(f32))
LENGTHS = I32

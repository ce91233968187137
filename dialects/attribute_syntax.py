"""
Readable syntax for the properties of ops: `{strides = [1, 1], epsilon = 1.0e-05, group = 2}`.

Integers are `i64`, floats are `f32`, and lists of either are dense arrays; the same holds within dictionaries. Other
floats are followed by their type. Everything else is written as in MLIR.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.sizes import SizesAttr, shape_at
from glow_mlir.support.identity import MAX_KEPT
from glow_mlir.support.symbols import Size, SymbolicSize

MAX_F32 = float.fromhex("0x1.fffffep+127")
"""The largest number of f32."""

_NAME = re.compile(r"[A-Za-z_][\w$.]*")
"""A name that needs no quotes."""

AttributeValue = Attribute | bool | int | float | str | Sequence[int] | Sequence[float] | Sequence[Size]
"""The Python values that `to_attribute` accepts."""


def properties_at(properties: Mapping[str, Attribute], symbols: Mapping[str, int]) -> dict[str, Attribute]:
    """Properties with symbolic sizes replaced by numbers, for these values of the symbols."""
    return {
        name: to_attribute(shape_at(value.data, symbols)) if isinstance(value, SizesAttr) else value
        for name, value in properties.items()
    }


def to_attribute(value: AttributeValue, wide: bool = False) -> Attribute:
    """
    The attribute for a Python value: bool → i1, int → i64, float → f32, str → string, numbers → dense array.

    A list of numbers is one of f32 where its first item is a float, else one of i64; with symbolic sizes, it is
    `#glow.sizes`. With `wide`, a float is one of f64
    where f32 would round it.
    """
    if isinstance(value, int):
        return _truth(bool(value)) if isinstance(value, bool) else integer_attribute(int(value), i64)
    if isinstance(value, float):
        return float_attribute(value, f64 if wide and not is_f32(value) else f32)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, Attribute):
        return value
    if any(isinstance(item, SymbolicSize) for item in value):
        return SizesAttr(tuple(item if isinstance(item, SymbolicSize) else int(item) for item in value))
    if value and isinstance(value[0], float):
        return DenseArrayBase.from_list(f32, [float(cast("float", item)) for item in value])
    return _integers(tuple([int(cast("int", item)) for item in value]))


def float_attribute(value: float, type_: Attribute) -> FloatAttr[Any]:
    """The attribute of a float of that type; equal numbers share one, but not zeros of different signs."""
    return _float(struct.pack("<d", value), type_)


@lru_cache(MAX_KEPT)
def _float(bits: bytes, type_: Attribute) -> FloatAttr[Any]:
    (value,) = struct.unpack("<d", bits)
    return FloatAttr(value, type_)  # pyright: ignore[reportArgumentType, reportCallIssue]


@lru_cache(MAX_KEPT)
def integer_attribute(value: int, type_: Attribute) -> IntegerAttr[Any]:
    """The attribute of an integer of that type; equal integers share one."""
    return IntegerAttr(value, type_)  # pyright: ignore[reportArgumentType, reportCallIssue]


@cache
def _truth(value: bool) -> Attribute:
    return IntegerAttr(int(value), i1)


@lru_cache(MAX_KEPT)
def _integers(values: tuple[int, ...]) -> Attribute:
    """The attribute, cached: making it takes xDSL longer than looking it up."""
    return DenseArrayBase.from_list(i64, values)


def is_f32(value: float) -> bool:
    """Whether f32 represents the value exactly; true for infinities and NaN."""
    if not math.isfinite(value):
        return True
    return abs(value) <= MAX_F32 and struct.unpack("f", struct.pack("f", value))[0] == value


def shortest_float(value: float, narrow: bool = True) -> str:
    """
    The shortest MLIR float literal that parses to the same number; `inf`, `-inf` and `nan` as words.

    It is read as f32 where it is `narrow`, else as f64.
    """
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    for precision in range(1, 10 if narrow else 0):
        text = f"{value:.{precision}g}"
        if struct.pack("f", float(text)) == struct.pack("f", value):
            break
    else:
        text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}" if exponent else mantissa


def _list_items(value: DenseArrayBase[Any]) -> list[str] | None:
    """The items of an array of i64 or f32 in the form that `_parse_list` parses; `None` for arrays it cannot parse."""
    if value.elt_type == i64:
        return [str(item) for item in value.iter_values()]
    items = [shortest_float(float(item)) for item in value.iter_values()] if value.elt_type == f32 else []
    # Brackets without items are a list of i64.
    return items or None


def print_value(printer: Printer, value: Attribute) -> None:
    """Print one property value."""
    match value:
        case DenseArrayBase() if (items := _list_items(value)) is not None:
            printer.print_string(f"[{', '.join(items)}]")
        case DictionaryAttr() if all(map(_NAME.fullmatch, value.data)):
            _print_entries(printer, value.data)
        case IntegerAttr() if value.type == i64:
            printer.print_string(str(value.value.data))
        case IntegerAttr() if value.type == i1:
            printer.print_string("true" if value.value.data else "false")
        case FloatAttr() if isinstance(value.type, Float32Type):
            printer.print_string(shortest_float(value.value.data))
        case FloatAttr():
            # xDSL writes some numbers in hexadecimal, which it reads back as integers.
            printer.print_string(f"{shortest_float(value.value.data, narrow=False)} : ")
            printer.print_attribute(value.type)
        case _:
            printer.print_attribute(value)


def print_properties(printer: Printer, properties: Mapping[str, Attribute]) -> None:
    """Print ` {name = value, …}`, or nothing without properties; a unit attribute prints as its name alone."""
    if properties:
        printer.print_string(" ")
        _print_entries(printer, properties)


def _print_entries(printer: Printer, properties: Mapping[str, Attribute]) -> None:
    """Print `{name = value, …}`."""
    printer.print_string("{")
    for position, (name, value) in enumerate(properties.items()):
        if position:
            printer.print_string(", ")
        printer.print_string(name)
        if not isinstance(value, UnitAttr):
            printer.print_string(" = ")
            print_value(printer, value)
    printer.print_string("}")


def _parse_list(parser: Parser) -> Attribute:
    items: list[Attribute] = []
    if parser.parse_optional_punctuation("]") is None:
        items.append(parse_value(parser))
        while parser.parse_optional_punctuation(","):
            items.append(parse_value(parser))
        parser.parse_punctuation("]")
    integers = [item.value.data for item in items if isinstance(item, IntegerAttr) and item.type == i64]
    if len(integers) == len(items):
        return DenseArrayBase.from_list(i64, integers)
    floats = [item.value.data for item in items if isinstance(item, FloatAttr) and item.type == f32]
    if len(floats) == len(items):
        return DenseArrayBase.from_list(f32, floats)
    return ArrayAttr(items)


def _parse_number(parser: Parser, number: float) -> Attribute:
    if parser.parse_optional_punctuation(":"):
        element = parser.parse_type()
        kind = FloatAttr if isinstance(number, float) or is_float(element) else IntegerAttr
        return kind(number, element)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return to_attribute(number)


def parse_value(parser: Parser) -> Attribute:
    """Parse one property value."""
    if parser.parse_optional_punctuation("["):
        return _parse_list(parser)
    if parser.parse_optional_punctuation("{"):
        return DictionaryAttr(_parse_entries(parser))
    if (keyword := parser.parse_optional_keyword_in(("true", "false"))) is not None:
        return to_attribute(keyword == "true")
    if (keyword := parser.parse_optional_keyword_in(("inf", "nan"))) is not None:
        return _parse_number(parser, float(keyword))
    if parser.parse_optional_characters("-"):
        if parser.parse_optional_keyword("inf"):
            return _parse_number(parser, -math.inf)
        return _parse_number(parser, -parser.parse_number())
    if (number := parser.parse_optional_number()) is not None:
        return _parse_number(parser, number)
    return parser.parse_attribute()


def parse_properties(parser: Parser) -> dict[str, Attribute]:
    """Parse what `print_properties` prints; no `{` gives an empty dictionary."""
    return {} if parser.parse_optional_punctuation("{") is None else _parse_entries(parser)


def _parse_entries(parser: Parser) -> dict[str, Attribute]:
    """Parse the entries of a dictionary after its `{`."""
    properties: dict[str, Attribute] = {}
    if parser.parse_optional_punctuation("}"):
        return properties
    while True:
        quoted = parser.parse_optional_str_literal()
        name = parser.parse_identifier() if quoted is None else quoted
        if name in properties:
            parser.raise_error(f"property '{name}' is given twice")
        properties[name] = parse_value(parser) if parser.parse_optional_punctuation("=") else UnitAttr()
        if parser.parse_optional_punctuation(",") is None:
            break
    parser.parse_punctuation("}")
    return properties

"""The readable forms of operations that have one of their own: constants, slices, convolutions, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.stablehlo.attributes import ConvAttr, parse_integers
from glow_mlir.dialects.stablehlo.field_syntax import Properties, print_integers
from glow_mlir.dialects.stablehlo.syntax import build, parse_attributes, parse_types, print_attributes, print_types
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class SpecialForm:
    """A readable form with functions of its own."""

    parse: Callable[[type[IRDLOperation], Parser], Operation]
    """Read what follows the name of an operation of the kind."""
    print: Callable[[Operation, Printer], None]
    """Write what follows the name of an operation."""


def _integers(values: Sequence[int]) -> Attribute:
    return DenseArrayBase.from_list(i64, values)


def _listed(op: Operation, name: str) -> tuple[int, ...]:
    """The numbers of a property."""
    return tuple(cast("DenseArrayBase[Any]", op.properties[name]).get_values())


# ---- stablehlo.constant {attributes} dense<1.0> : tensor<2xf32> ----


def _parse_constant(kind: type[IRDLOperation], parser: Parser) -> Operation:
    attributes = parse_attributes(parser, {"value": UnitAttr()})
    value: Any = parser.parse_attribute()
    type_: Attribute = parser.parse_type() if parser.parse_optional_punctuation(":") is not None else value.get_type()
    return build(kind, parser, [], ((), (type_,)), {"value": value}, attributes)


def _print_constant(op: Operation, printer: Printer) -> None:
    print_attributes(op, printer, ("value",))
    value: Any = op.properties["value"]
    printer.print_string(" ")
    printer.print_attribute(value)
    if op.result_types != (value.get_type(),):  # Of a quantized type.
        printer.print_string(" : ")
        printer.print_list(op.result_types, printer.print_attribute)


# ---- stablehlo.slice %a [0:2, 1:8:2] : types ----

_SLICE = ("start_indices", "limit_indices", "strides")


def _parse_slice(kind: type[IRDLOperation], parser: Parser) -> Operation:
    operand = parser.parse_unresolved_operand()

    def part() -> tuple[int, int, int]:
        start = parser.parse_integer()
        parser.parse_punctuation(":")
        limit = parser.parse_integer()
        return start, limit, parser.parse_integer() if parser.parse_optional_punctuation(":") is not None else 1

    parts = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, part)
    properties: Properties = {name: _integers([each[at] for each in parts]) for at, name in enumerate(_SLICE)}
    attributes = parse_attributes(parser, properties)
    return build(kind, parser, [operand], parse_types(parser, "function", 1), properties, attributes)


def _print_slice(op: Operation, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_operand(op.operands[0])
    parts = zip(*(_listed(op, name) for name in _SLICE), strict=True)
    words = [f"{start}:{limit}{f':{stride}' if stride != 1 else ''}" for start, limit, stride in parts]
    printer.print_string(f" [{', '.join(words)}]")
    print_attributes(op, printer, _SLICE)
    print_types(op, printer, "function")


# ---- stablehlo.get_tuple_element %a[1] : types ----


def _parse_element(kind: type[IRDLOperation], parser: Parser) -> Operation:
    operand = parser.parse_unresolved_operand()
    with parser.in_square_brackets():
        properties: Properties = {"index": IntegerAttr(parser.parse_integer(), i32)}
    attributes = parse_attributes(parser, properties)
    return build(kind, parser, [operand], parse_types(parser, "function", 1), properties, attributes)


def _print_element(op: Operation, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_operand(op.operands[0])
    printer.print_string(f"[{cast('IntegerAttr[Any]', op.properties['index']).value.data}]")
    print_attributes(op, printer, ("index",))
    print_types(op, printer, "function")


# ---- stablehlo.convolution(%a, %b) dim_numbers = …, window = {stride = [1, 1], …} {attributes} : types ----


def _bools(parser: Parser) -> Attribute:
    def item() -> int:
        return int(parser.parse_integer(allow_boolean=True))

    return DenseArrayBase.from_list(i1, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, item))


def _print_bools(printer: Printer, value: Any) -> None:
    words = ["true" if each else "false" for each in value.get_values()]
    printer.print_string(f"[{', '.join(words)}]")


def _pads(parser: Parser) -> Attribute:
    pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_integers(parser))
    if any(len(each) != 2 for each in pairs):
        parser.raise_error("expected pairs of numbers, as [[0, 1], [0, 1]]")
    flat = [number for each in pairs for number in each]
    return cast("Attribute", DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(pairs), 2]), flat))


def _print_pads(printer: Printer, value: Any) -> None:
    flat = value.get_values()
    printer.print_string(str([list(flat[at : at + 2]) for at in range(0, len(flat), 2)]))


_Window = tuple[str, Callable[[Parser], Attribute], Callable[[Printer, Any], None]]


def _numbers(parser: Parser) -> Attribute:
    return _integers(parse_integers(parser))


def _print_numbers(printer: Printer, value: Any) -> None:
    print_integers(printer, value.get_values())


_WINDOW: dict[str, _Window] = {
    "stride": ("window_strides", _numbers, _print_numbers),
    "pad": ("padding", _pads, _print_pads),
    "lhs_dilate": ("lhs_dilation", _numbers, _print_numbers),
    "rhs_dilate": ("rhs_dilation", _numbers, _print_numbers),
    "reverse": ("window_reversal", _bools, _print_bools),
}
"""Word of a window → its property, and how it is read and written."""


def _parse_convolution(kind: type[IRDLOperation], parser: Parser) -> Operation:
    operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    parser.parse_keyword("dim_numbers")
    parser.parse_punctuation("=")
    properties: Properties = {"dimension_numbers": ConvAttr(ConvAttr.parse_lists(parser))}
    parser.parse_punctuation(",")
    parser.parse_keyword("window")
    parser.parse_punctuation("=")

    def part() -> None:
        word = parser.parse_identifier()
        key, read, _ = _WINDOW.get(word) or parser.raise_error(f"a window has {', '.join(_WINDOW)}, not '{word}'")
        parser.parse_punctuation("=")
        if key in properties:
            parser.raise_error(f"'{word}' is given twice")
        properties[key] = read(parser)

    parser.parse_comma_separated_list(parser.Delimiter.BRACES, part)
    attributes = parse_attributes(parser, properties)
    return build(kind, parser, operands, parse_types(parser, "function", len(operands)), properties, attributes)


def _print_convolution(op: Operation, printer: Printer) -> None:
    printer.print_operands(op.operands)
    printer.print_string(" dim_numbers = ")
    cast("ConvAttr", op.properties["dimension_numbers"]).print_lists(printer)

    def part(item: tuple[str, _Window]) -> None:
        word, (key, _, write) = item
        printer.print_string(f"{word} = ")
        write(printer, op.properties[key])

    printer.print_string(", window = ")
    given = [(word, window) for word, window in _WINDOW.items() if window[0] in op.properties]
    with printer.in_braces():
        printer.print_list(given, part)
    print_attributes(op, printer, ("dimension_numbers", *(key for key, _, _ in _WINDOW.values())))
    print_types(op, printer, "function")


# ---- stablehlo.custom_call @f(%a) {attributes} : types ----


def _parse_call(kind: type[IRDLOperation], parser: Parser) -> Operation:
    properties: Properties = {"call_target_name": parser.parse_symbol_name()}
    operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    attributes = parse_attributes(parser, properties)
    return build(kind, parser, operands, parse_types(parser, "function", len(operands)), properties, attributes)


def _print_call(op: Operation, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_symbol_name(cast("StringAttr", op.properties["call_target_name"]).data)
    printer.print_operands(op.operands)
    print_attributes(op, printer, ("call_target_name",))
    print_types(op, printer, "function")


# ---- stablehlo.composite "f" %a {attributes} : types ----


def _parse_composite(kind: type[IRDLOperation], parser: Parser) -> Operation:
    properties: Properties = {"name": StringAttr(parser.parse_str_literal())}
    operands = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    attributes = parse_attributes(parser, properties)
    types = parse_types(parser, "function", len(operands or ()))
    return build(kind, parser, operands or (), types, properties, attributes)


def _print_composite(op: Operation, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_string_literal(cast("StringAttr", op.properties["name"]).data)
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_operand)
    print_attributes(op, printer, ("name",))
    print_types(op, printer, "function")


# ---- chlo.top_k(%a, k = 2) {attributes} : type -> (type, type) ----


def _parse_top_k(kind: type[IRDLOperation], parser: Parser) -> Operation:
    with parser.in_parens():
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        parser.parse_keyword("k")
        parser.parse_punctuation("=")
        properties: Properties = {"k": IntegerAttr(parser.parse_integer(), i64)}
    attributes = parse_attributes(parser, properties)
    return build(kind, parser, [operand], parse_types(parser, "arrow", 1), properties, attributes)


def _print_top_k(op: Operation, printer: Printer) -> None:
    with printer.in_parens():
        printer.print_operand(op.operands[0])
        printer.print_string(f", k = {cast('IntegerAttr[Any]', op.properties['k']).value.data}")
    print_attributes(op, printer, ("k",))
    print_types(op, printer, "arrow")


CONSTANT = SpecialForm(_parse_constant, _print_constant)
SLICE = SpecialForm(_parse_slice, _print_slice)
TUPLE_ELEMENT = SpecialForm(_parse_element, _print_element)
CONVOLUTION = SpecialForm(_parse_convolution, _print_convolution)
CUSTOM_CALL = SpecialForm(_parse_call, _print_call)
COMPOSITE = SpecialForm(_parse_composite, _print_composite)
TOP_K = SpecialForm(_parse_top_k, _print_top_k)

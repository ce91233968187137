"""
The readable form of the operations of `stablehlo` and `chlo`, as OpenXLA's own printer writes it.

Most operations are `name %a, %b, word = value {attributes} : types`; a `Form` says which words, and how types are
written. `region_syntax.py` and `special_syntax.py` have what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ComplexType, TensorType, TupleType
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from glow_mlir.dialects.stablehlo.field_syntax import Field, Properties, fields
from glow_mlir.support.dataclass import dataclass

Types = tuple[Sequence[Attribute], Sequence[Attribute]]
"""The types of operands and results."""


@dataclass(frozen=True)
class TypeForm:
    """How the types of an operation are written behind `:` where they follow from few; else as a function's type."""

    short: Callable[[Sequence[Attribute], Sequence[Attribute]], Sequence[Attribute] | None]
    """Types of operands and results → those that are written, `None` where they do not follow from fewer."""
    long: Callable[[Sequence[Attribute], int], Types | None]
    """Types that are written, and the number of operands → those of operands and results, `None` for a wrong number."""


def _same(operands: Sequence[Attribute], results: Sequence[Attribute]) -> Sequence[Attribute] | None:
    return results if len(results) == 1 and all(each == results[0] for each in operands) else None


def _all_same(types: Sequence[Attribute], count: int) -> Types | None:
    return ([types[0]] * count, types) if len(types) == 1 else None


def _select(operands: Sequence[Attribute], results: Sequence[Attribute]) -> Sequence[Attribute] | None:
    if len(operands) == 3 and [*operands[1:]] == [*results, *results]:
        return (operands[0], results[0])
    return None


def _selected(types: Sequence[Attribute], count: int) -> Types | None:
    return ((types[0], types[1], types[1]), types[1:]) if (len(types), count) == (2, 3) else None


def _parts(result: Attribute) -> Attribute | None:
    """The type of the real parts of a type of complex numbers."""
    whole = cast("TensorType[Any]", result) if isinstance(result, TensorType) else None
    if whole is None or not isinstance(whole.element_type, ComplexType):
        return None
    return TensorType(cast("Any", whole.element_type).element_type, whole.get_shape(), whole.encoding)


def _complex(operands: Sequence[Attribute], results: Sequence[Attribute]) -> Sequence[Attribute] | None:
    return results if len(results) == 1 and all(each == _parts(results[0]) for each in operands) else None


def _complexes(types: Sequence[Attribute], count: int) -> Types | None:
    part = _parts(types[0]) if len(types) == 1 else None
    return None if part is None else ([part] * count, types)


def _tuple(operands: Sequence[Attribute], results: Sequence[Attribute]) -> Sequence[Attribute] | None:
    parts = [each.types.data if isinstance(each, TupleType) else () for each in results]
    return results if len(parts) == 1 and tuple(parts[0]) == tuple(operands) else None


def _tupled(types: Sequence[Attribute], count: int) -> Types | None:
    if len(types) == 1 and isinstance(found := types[0], TupleType) and len(found.types) == count:
        return found.types.data, types
    return None


TYPE_FORMS: Mapping[str, TypeForm] = {
    "function": TypeForm(lambda operands, results: None, lambda types, count: None),
    "same": TypeForm(_same, _all_same),
    "results": TypeForm(lambda operands, results: results, lambda types, count: None if count else ((), types)),
    "operands": TypeForm(lambda operands, results: operands, lambda types, count: (types, ())),
    "pairs": TypeForm(
        lambda operands, results: operands if [*operands] == [*results] else None, lambda types, count: (types, types)
    ),
    "select": TypeForm(_select, _selected),
    "complex": TypeForm(_complex, _complexes),
    "tuple": TypeForm(_tuple, _tupled),
}
"""The ways in which types are written."""


@dataclass(frozen=True)
class Form:
    """The readable form of an operation: `LEAD, %a, %b, WORD = VALUE, … TAIL {attributes} : types`."""

    fields: tuple[Field, ...] = ()
    types: str = "function"
    """A key of `TYPE_FORMS`; `arrow` is `T, T -> R`."""
    lead: Field | None = None
    """A value without a word, before the operands."""
    tail: Field | None = None
    """An optional value without a word, behind the operands."""
    has_empty: bool = False
    """Whether attributes stand first, and `()` is all behind them where there are no operands."""

    def parse(self, kind: type[IRDLOperation], parser: Parser) -> Operation:
        """Read what follows the name of an operation."""
        properties: Properties = {}
        operands: list[UnresolvedOperand] = []
        missing = list(self.fields)

        def item() -> bool:
            operand = parser.parse_optional_unresolved_operand()
            if operand is not None:
                operands.append(operand)
                return True
            return self._parse_field(parser, missing, properties)

        attributes = parser.parse_optional_attr_dict() if self.has_empty else {}
        if self.has_empty and parser.parse_optional_punctuation("(") is not None:
            parser.parse_punctuation(")")
            return build(kind, parser, [], ((), ()), properties, attributes)
        if self.lead is not None:
            self.lead.parse(parser, properties)
        else:
            item()
        while parser.parse_optional_punctuation(",") is not None:
            if not item():
                parser.parse_punctuation(",")  # A list of no operands keeps its comma: `%a, , sizes = []`.
                if not item():
                    parser.raise_error("expected an operand or a field")
        for field in missing:
            if not field.is_optional:
                parser.raise_error(f"expected ', {field.word} ='")
        attributes = attributes or parse_attributes(parser, properties)
        return build(kind, parser, operands, parse_types(parser, self.types, len(operands)), properties, attributes)

    def _parse_field(self, parser: Parser, missing: list[Field], properties: Properties) -> bool:
        """Read a field that is still missing, or the tail, if it follows."""
        for field in missing:
            if parser.parse_optional_keyword(field.word) is not None:
                parser.parse_punctuation("=")
                field.parse(parser, properties)
                missing.remove(field)
                return True
        if self.tail is None or self.tail.keys[0] in properties:
            return False
        self.tail.parse(parser, properties)
        return True

    def print(self, op: Operation, printer: Printer) -> None:
        """Write what follows the name of an operation."""
        if self.has_empty:
            print_attributes(op, printer, ())
            if not op.operands:
                printer.print_string("()")
                return
        shown = [field for field in self.fields if field.is_in(op)]
        items: list[Callable[[], object]] = []
        if self.lead is not None:
            items.append(lambda lead=self.lead: lead.print(printer, op))
        items += [lambda operand=operand: printer.print_operand(operand) for operand in op.operands]
        items += [lambda field=field: self._print_field(printer, op, field) for field in shown]
        if self.tail is not None and self.tail.is_in(op):
            items.append(lambda tail=self.tail: tail.print(printer, op))
        printer.print_string(" " if items else "")
        printer.print_list(items, lambda item: item())
        used = [key for field in (self.lead, self.tail, *shown) if field is not None for key in field.keys]
        if not self.has_empty:
            print_attributes(op, printer, used)
        print_types(op, printer, self.types)

    def _print_field(self, printer: Printer, op: Operation, field: Field) -> None:
        printer.print_string(f"{field.word} = ")
        field.print(printer, op)


def parse_attributes(parser: Parser, given: Properties) -> dict[str, Attribute]:
    """Read `{…}`, if it follows; raises `ParseError` for a property that is given already."""
    begin = parser.pos
    found = parser.parse_optional_attr_dict()
    for name in found:
        if name in given:
            parser.raise_error(f"'{name}' is given twice", begin)
    return found


def parse_types(parser: Parser, form: str, count: int) -> Types:
    """Read `: types` of an operation with `count` operands."""
    if form == "operands" and not count:
        return (), ()
    parser.parse_punctuation(":")
    if form == "arrow":
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation("->")
        return operands, _parse_results(parser)
    begin = parser.pos
    function = parser.parse_optional_function_type()
    if function is not None:
        return function.inputs.data, function.outputs.data
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    found = TYPE_FORMS[form].long(types, count)
    if found is None:
        parser.raise_error("expected the types of operands and results, as '(type, type) -> type'", begin)
    return found


def _parse_results(parser: Parser) -> Sequence[Attribute]:
    """Read a type, or several in parentheses."""
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if several is None else several


def print_types(op: Operation, printer: Printer, form: str) -> None:
    """Write `: types` of an operation."""
    operands, results = op.operand_types, op.result_types
    if form == "operands" and not operands:
        return
    printer.print_string(" : ")
    if form == "arrow":
        printer.print_list(operands, printer.print_attribute)
        printer.print_string(" -> ")
        several = len(results) != 1
        printer.print_string("(" if several else "")
        printer.print_list(results, printer.print_attribute)
        printer.print_string(")" if several else "")
    elif (short := TYPE_FORMS[form].short(operands, results)) is not None:
        printer.print_list(short, printer.print_attribute)
    else:
        printer.print_function_type(operands, results)


def build(
    kind: type[IRDLOperation],
    parser: Parser,
    operands: Sequence[UnresolvedOperand],
    types: Types,
    properties: Properties,
    attributes: Mapping[str, Attribute] | None = None,
    regions: Sequence[Any] = (),
) -> Operation:
    """
    The operation of what was read: those of `attributes` that are properties of its kind become such.

    Raises `ParseError` for a property that the text has twice, and for a wrong number of types.
    """
    known = kind.get_irdl_definition().properties
    rest: dict[str, Attribute] = {}
    for name, value in (attributes or {}).items():
        if name in properties:
            parser.raise_error(f"'{name}' is given twice")
        (properties if name in known else rest)[name] = value
    values = parser.resolve_operands(operands, types[0], parser.pos)
    return kind.create(operands=values, result_types=types[1], properties=properties, attributes=rest, regions=regions)


def print_attributes(op: Operation, printer: Printer, used: Sequence[str], keyword: bool = False) -> None:
    """Write the attributes and those properties that are not `used` by the text before."""
    rest = {**{key: value for key, value in op.properties.items() if key not in used}, **op.attributes}
    printer.print_op_attributes({key: rest[key] for key in sorted(rest)}, print_keyword=keyword)


def form(text: str = "", types: str = "function", lead: str = "", tail: str = "", has_empty: bool = False) -> Form:
    """The form of a line of a table, with fields as `fields` reads them; `lead` and `tail` are `property:kind`."""
    (before,) = fields(f"={lead}") if lead else (None,)
    (behind,) = fields(f"={tail}?") if tail else (None,)
    return Form(fields(text), types, before, behind, has_empty)

"""The fields of operations in text, as `dims = [0, 1]` or `format = e8m10`: how each is read and written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.stablehlo import attributes
from glow_mlir.support.dataclass import dataclass

Properties = dict[str, Attribute]
"""The properties of an operation that is being read."""


@dataclass(frozen=True)
class Field:
    """A field of an operation in text, behind its operands: `, WORD = VALUE`."""

    word: str
    """What stands before `=`."""
    keys: tuple[str, ...]
    """The properties that the field holds."""
    kind: Kind
    is_optional: bool = False

    def parse(self, parser: Parser, properties: Properties) -> None:
        """Read the value, into properties."""
        self.kind.parse(parser, self, properties)

    def print(self, printer: Printer, op: Operation) -> None:
        """Write the value."""
        self.kind.print(printer, self, op)

    def is_in(self, op: Operation) -> bool:
        """Whether the text of an operation has the field."""
        return self.kind.is_in(self, op)


@dataclass(frozen=True)
class Kind:
    """How values of a kind are read and written."""

    parse: Callable[[Parser, Field, Properties], None]
    print: Callable[[Printer, Field, Operation], None]
    is_in: Callable[[Field, Operation], bool] = lambda field, op: field.keys[0] in op.properties


def _value(read: Callable[[Parser], Attribute], write: Callable[[Printer, Any], None]) -> Kind:
    """The kind of a field that is one property."""

    def parse(parser: Parser, field: Field, properties: Properties) -> None:
        properties[field.keys[0]] = read(parser)

    def print_(printer: Printer, field: Field, op: Operation) -> None:
        write(printer, op.properties[field.keys[0]])

    return Kind(parse, print_)


def print_integers(printer: Printer, values: object) -> None:
    """Write numbers as `[1, 2]`."""
    printer.print_string(str(list(cast("list[int]", values))))


def _word(kind: type[attributes.WordAttr]) -> Kind:
    return _value(lambda parser: kind(kind.parse_word(parser)), lambda printer, value: printer.print_string(value.data))


def _precisions(parser: Parser) -> Attribute:
    kind = attributes.PrecisionAttr
    return ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: kind(kind.parse_word(parser))))


def _print_precisions(printer: Printer, value: ArrayAttr[Any]) -> None:
    printer.print_string(f"[{', '.join(each.data for each in value)}]")


def _algorithm(parser: Parser) -> Attribute:
    kind = attributes.DotAlgorithmAttr
    return kind(kind.parse_parameter(parser))


# ---- the number of bits of floats: e8m10 ----

_FORMAT = re.compile(r"e(\d{1,9})m(\d{1,9})")


def _parse_format(parser: Parser, field: Field, properties: Properties) -> None:
    word = parser.parse_identifier()
    found = _FORMAT.fullmatch(word)
    if found is None:
        parser.raise_error(f"a format is e8m10 (8 bits of exponent, 10 of mantissa), not {word}")
    for key, bits in zip(field.keys, found.groups(), strict=True):
        properties[key] = IntegerAttr(int(bits), i32)


def _print_format(printer: Printer, field: Field, op: Operation) -> None:
    exponent, mantissa = (cast("IntegerAttr[Any]", op.properties[key]).value.data for key in field.keys)
    printer.print_string(f"e{exponent}m{mantissa}")


# ---- pairs of lists of dimensions: [0] x [1] ----


def _names(field: Field) -> tuple[str, str]:
    """The two fields of the dimension numbers that a field of the text is."""
    return f"lhs_{field.word[:-4]}dimensions", f"rhs_{field.word[:-4]}dimensions"


def _parse_pair(parser: Parser, field: Field, properties: Properties) -> None:
    left = attributes.parse_integers(parser)
    parser.parse_characters("x")
    both = dict(zip(_names(field), (left, attributes.parse_integers(parser)), strict=True))
    before = properties.get(field.keys[0])
    known = dict(before.data) if isinstance(before, attributes.RecordAttr) else {}
    properties[field.keys[0]] = attributes.DotAttr.of(**known, **both)


def _dimensions(op: Operation, field: Field) -> list[tuple[int, ...]]:
    record = op.properties[field.keys[0]]
    return [record.integers(name) for name in _names(field)] if isinstance(record, attributes.RecordAttr) else []


def _print_pair(printer: Printer, field: Field, op: Operation) -> None:
    printer.print_string(" x ".join(str(list(each)) for each in _dimensions(op, field)))


def _has_pair(field: Field, op: Operation) -> bool:
    return not field.is_optional or any(_dimensions(op, field))


def _integer(width: Any) -> Kind:
    return _value(
        lambda parser: IntegerAttr(parser.parse_integer(allow_boolean=False), width),
        lambda printer, value: printer.print_string(str(value.value.data)),
    )


KINDS: Mapping[str, Kind] = {
    "i64": _integer(i64),
    "i32": _integer(i32),
    "i64s": _value(
        lambda parser: DenseArrayBase.from_list(i64, attributes.parse_integers(parser)),
        lambda printer, value: print_integers(printer, value.get_values()),
    ),
    "bool": _value(
        lambda parser: BoolAttr.from_bool(parser.parse_boolean()),
        lambda printer, value: printer.print_string("true" if value.value.data else "false"),
    ),
    "string": _value(
        lambda parser: StringAttr(parser.parse_str_literal()),
        lambda printer, value: printer.print_string_literal(value.data),
    ),
    "precision": _value(_precisions, _print_precisions),
    "algorithm": _value(_algorithm, lambda printer, value: value.print_parameter(printer)),
    "format": Kind(_parse_format, _print_format),
    "pair": Kind(_parse_pair, _print_pair, _has_pair),
    "direction": _word(attributes.ComparisonDirectionAttr),
    "comparison": _word(attributes.ComparisonTypeAttr),
    "fft_type": _word(attributes.FftTypeAttr),
    "rng_algorithm": _word(attributes.RngAlgorithmAttr),
    "rng_distribution": _word(attributes.RngDistributionAttr),
}
"""The kinds of fields."""


def fields(text: str) -> tuple[Field, ...]:
    """
    The fields of a line of a table: `word=property:kind`, with `?` behind an optional one.

    A field that is two properties has both, with `+` between them.
    """
    found: list[Field] = []
    for item in text.split():
        word, _, rest = item.rstrip("?").partition("=")
        keys, _, kind = rest.partition(":")
        found.append(Field(word, tuple(keys.split("+")), KINDS[kind], item.endswith("?")))
    return tuple(found)

"""
The base of all `glow_high` operators: types are inferred, syntax and verification are written once.

A concrete operator declares operands, properties and results, and defines `infer_types`. Everything else — printing,
parsing, verification, the builder `make`, the `glow_low` instruction — follows from that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import LocationAttr, NoneAttr, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue, SSAValues
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    OptionalDef,
    VariadicDef,
    base,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.attribute_syntax import (
    AttributeValue,
    parse_properties,
    print_properties,
    to_attribute,
)

TENSOR = base(TensorType)
"""Constraint of operands and results: any tensor. `infer_types` says more."""

SEGMENTS = (AttrSizedOperandSegments(as_property=True),)
"""`irdl_options` of an operator with more than one optional or variadic operand."""

Operand = SSAValue | Operation | Sequence[SSAValue] | None


def _value(operand: SSAValue | Operation) -> SSAValue:
    return operand.results[0] if isinstance(operand, Operation) else operand


class HighOp(IRDLOperation, ABC):
    """An operator on tensors, free of side effects; its result types follow from operands and properties."""

    traits = traits_def(Pure())

    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs (result, operand) that may live in one buffer: each element is read before it is written."""

    @abstractmethod
    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        """
        The result types, in order; raises `VerifyException` where operands or properties do not fit.

        It may read operands only through `glow_mlir.dialects.shapes`, since the derived instruction uses it on buffers.
        """

    @classmethod
    def make(
        cls, *operands: Operand, location: LocationAttr | None = None, **properties: AttributeValue | None
    ) -> Self:
        """
        Build the operator with inferred result types.

        Operands come in the order of their definition: a value, a sequence for a variadic one, `None` for an absent
        optional one (trailing ones may be left out). Raises `VerifyException` where they do not fit.
        """
        definition = cls.get_irdl_definition()
        if len(operands) > len(definition.operands):
            raise VerifyException(f"{cls.name} has {len(definition.operands)} operands, got {len(operands)}")
        groups = [*operands, *[None] * (len(definition.operands) - len(operands))]
        flat: list[SSAValue] = []
        segments: list[int] = []
        for (name, declared), group in zip(definition.operands, groups, strict=True):
            if group is None and not isinstance(declared, VariadicDef):
                raise VerifyException(f"operand '{name}' is missing")
            values = (
                []
                if group is None
                else [_value(group)]
                if isinstance(group, SSAValue | Operation)
                else [_value(v) for v in group]
            )
            flat += values
            segments.append(len(values))
        attributes = {name: to_attribute(value) for name, value in properties.items() if value is not None}
        if definition.options:
            attributes["operandSegmentSizes"] = to_segments(segments)
        return cls.inferred(flat, attributes, location)

    @classmethod
    def inferred(
        cls, operands: Sequence[SSAValue], properties: Mapping[str, Attribute], location: LocationAttr | None = None
    ) -> Self:
        """Build the operator from flat operands and complete properties; raises `VerifyException` like `make`."""
        placeholders = [NoneAttr()] * len(cls.get_irdl_definition().results)
        op = cls.create(operands=operands, result_types=placeholders, properties=properties, location=location)
        op.results = SSAValues(OpResult(type_, op, index) for index, type_ in enumerate(op.infer_types()))
        return op

    def verify_(self) -> None:
        for result, expected in zip(self.results, self.infer_types(), strict=True):
            if result.type != expected:
                raise VerifyException(f"result has type {result.type}, but {expected} follows from the operands")

    def inputs(self) -> tuple[SSAValue, ...]:
        """The operands that are read; on a derived instruction, those behind @in."""
        return tuple(self.operands)

    def operand_groups(self) -> list[tuple[str, list[SSAValue | None]]]:
        """The operands by name, in order of definition; an absent optional operand is `[None]`."""
        return operand_groups(self)

    def print(self, printer: Printer) -> None:
        values = [value for _, group in self.operand_groups() for value in group]
        while values and values[-1] is None:
            values.pop()
        for position, value in enumerate(values):
            printer.print_string(", " if position else " ")
            printer.print_string("none") if value is None else printer.print_operand(value)
        print_properties(printer, visible_properties(self))
        if self.results:
            printer.print_string(" : ")
            printer.print_list(self.result_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parse_operands(parser)
        properties = parse_properties(parser)
        types: list[Attribute] = []
        if parser.parse_optional_punctuation(":"):
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        definition = cls.get_irdl_definition()
        segments = assign_segments(parser, [d for _, d in definition.operands], values)
        if definition.options:
            properties["operandSegmentSizes"] = to_segments(segments)
        known, rest = split_known(properties, definition.properties)
        return cls.create(
            operands=[value for value in values if value is not None],
            result_types=types,
            properties=known,
            attributes=rest,
        )


def to_segments(sizes: Sequence[int]) -> Attribute:
    """The `operandSegmentSizes` property for those group sizes."""
    from xdsl.dialects.builtin import DenseArrayBase, i32

    return DenseArrayBase.from_list(i32, list(sizes))


def visible_properties(op: IRDLOperation) -> dict[str, Attribute]:
    """Properties and attributes worth printing: neither segment sizes nor values equal to their default."""
    definition = op.get_irdl_definition()
    visible: dict[str, Attribute] = {}
    for name, value in (*op.properties.items(), *op.attributes.items()):
        declared = definition.properties.get(name)
        if name == "operandSegmentSizes" or (declared is not None and declared.default_value == value):
            continue
        visible[name] = value
    return visible


def split_known(
    properties: Mapping[str, Attribute], declared: Mapping[str, object]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Split parsed pairs into declared properties and free attributes."""
    known = {name: value for name, value in properties.items() if name in declared}
    return known, {name: value for name, value in properties.items() if name not in declared}


def operand_groups(op: IRDLOperation) -> list[tuple[str, list[SSAValue | None]]]:
    """The operands of any op by name, in order of definition; an absent optional operand is `[None]`."""
    groups: list[tuple[str, list[SSAValue | None]]] = []
    for name, declared in op.get_irdl_definition().operands:
        value: SSAValue | Sequence[SSAValue] | None = getattr(op, name)
        if is_variadic(declared):
            assert isinstance(value, Sequence)
            groups.append((name, list(value)))
        else:
            assert value is None or isinstance(value, SSAValue)
            groups.append((name, [value]))
    return groups


def parse_optional_value(parser: Parser) -> SSAValue | None:
    """Parse `%a` if it follows; the value must be defined before, and its definition says its type."""
    operand = parser.parse_optional_unresolved_operand()
    if operand is None:
        return None
    values = parser.ssa_values.get(operand.operand_name, ())
    if operand.index >= len(values):
        parser.raise_error("SSA value used before assignment", operand.span)
    return values[operand.index]


def parse_defined_value(parser: Parser) -> SSAValue:
    """Parse `%a`, which must be defined before."""
    value = parse_optional_value(parser)
    return parser.raise_error("expected an operand") if value is None else value


def is_variadic(declared: object) -> bool:
    """Whether an operand definition takes any number of values, not just one or none."""
    return isinstance(declared, VariadicDef) and not isinstance(declared, OptionalDef)


def group_like(op: IRDLOperation, items: Iterable[Any]) -> list[Any]:
    """
    `items`, one for each operand of `op`, grouped as its definition says.

    A variadic operand gives a list, an absent optional one `None`.
    """
    remaining = iter(items)
    grouped: list[Any] = []
    for (_, group), (_, declared) in zip(operand_groups(op), op.get_irdl_definition().operands, strict=True):
        values = [None if value is None else next(remaining) for value in group]
        grouped.append(values if is_variadic(declared) else values[0])
    return grouped


def parse_operands(parser: Parser) -> list[SSAValue | None]:
    """Parse `%a, none, %b`; values must be defined before."""
    values: list[SSAValue | None] = []
    while True:
        if parser.parse_optional_keyword("none"):
            values.append(None)
        elif (value := parse_optional_value(parser)) is not None:
            values.append(value)
        elif values:
            parser.raise_error("expected an operand")
        else:
            return values
        if parser.parse_optional_punctuation(",") is None:
            return values


def assign_segments(parser: Parser, definitions: Sequence[object], values: Sequence[SSAValue | None]) -> list[int]:
    """How many of `values` each operand definition takes; the last one, if variadic, takes the rest."""
    sizes: list[int] = []
    position = 0
    for definition in definitions:
        if isinstance(definition, VariadicDef) and not isinstance(definition, OptionalDef):
            sizes.append(len(values) - position)
            position = len(values)
            continue
        present = position < len(values) and values[position] is not None
        if not present and not isinstance(definition, OptionalDef):
            parser.raise_error(f"expected {len(definitions)} operands, got {len(values)}")
        sizes.append(int(present))
        position += 1
    if position < len(values):
        parser.raise_error(f"expected {len(definitions)} operands, got {len(values)}")
    return sizes

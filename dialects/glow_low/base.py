"""
The base of all `glow_low` instructions: operands are addresses with a qualifier, and only memory ops have results.

Qualifiers are declared once, in `QUALIFIERS`; syntax, memory effects, liveness and sharing are derived from them.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects.builtin import LocationAttr, MemRefType, StringAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    VariadicDef,
    base,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind

from glow_mlir.dialects.attribute_syntax import parse_properties, print_properties
from glow_mlir.dialects.glow_high.base import (
    decoded_spans,
    is_variadic,
    operand_groups,
    parse_defined_value,
    segments_of,
    split_known,
    to_segments,
    visible_properties,
)
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.shapes import require
from glow_mlir.xdsl_patches.operations import LeanOperation, operands_of

BUFFER = base(MemRefType)
"""Constraint of operands: any buffer."""

SEGMENTS = (AttrSizedOperandSegments(as_property=True),)


class Qualifier(Enum):
    """How an instruction uses the buffer behind an operand (Glow's @in, @out, @inout and @scratch)."""

    OUT = "out"
    INOUT = "inout"
    IN = "in"
    SCRATCH = "scratch"

    reads: bool
    """Whether the content before the instruction matters."""
    writes: bool
    """Whether the content after the instruction differs."""

    def __init__(self, name: str) -> None:
        self.reads = name in ("in", "inout")
        self.writes = name != "in"


class _QualifierEffects(MemoryEffect):
    """Memory effects, one for each operand, by its qualifier. Elements of a written buffer have distinct addresses."""

    def verify(self, op: Operation) -> None:
        from glow_mlir.dialects.glow_low.memory import repeats_elements

        assert isinstance(op, QualifiedOp)
        for name, qualifier, value in op.named_uses():
            apart = not qualifier.writes or not repeats_elements(value)
            require(apart, f"@{qualifier.value} {name} is written, and its elements share places")

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, QualifiedOp)
        effects: set[EffectInstance] = set()
        for qualifier, value in op.uses():
            if qualifier.reads:
                effects.add(EffectInstance(MemoryEffectKind.READ, value))
            if qualifier.writes:
                effects.add(EffectInstance(MemoryEffectKind.WRITE, value))
        return effects


class QualifiedOp(LeanOperation, ABC):
    """An op on addresses; the qualifier of each operand specifies how it uses the buffer."""

    QUALIFIERS: ClassVar[Mapping[str, Qualifier]]
    """Operand name → qualifier."""

    irdl_options = SEGMENTS
    traits = traits_def(_QualifierEffects(), KnownAttributes())

    @property
    def kernel_name(self) -> str:
        """Name of the kernel that a backend selected; empty where there is none."""
        chosen = self.properties.get("kernel")
        return chosen.data if isinstance(chosen, StringAttr) else ""

    def named_uses(self) -> list[tuple[str, Qualifier, SSAValue]]:
        """Every operand present: its name, qualifier and buffer."""
        operands = operands_of(self)
        roles = _roles(type(self), len(operands), segments_of(self))
        return [(name, qualifier, value) for (name, qualifier), value in zip(roles, operands, strict=True)]

    def uses(self) -> list[tuple[Qualifier, SSAValue]]:
        """Every operand present: its qualifier and buffer."""
        operands = operands_of(self)
        roles = _roles(type(self), len(operands), segments_of(self))
        return [(qualifier, value) for (_, qualifier), value in zip(roles, operands, strict=True)]

    def inputs(self) -> tuple[SSAValue, ...]:
        """The buffers behind @in."""
        return tuple([value for qualifier, value in self.uses() if qualifier is Qualifier.IN])

    def outputs(self) -> tuple[SSAValue, ...]:
        """The buffers behind @out."""
        return tuple([value for qualifier, value in self.uses() if qualifier is Qualifier.OUT])


@cache
def _roles(kind: type[QualifiedOp], count: int, segments: bytes | None) -> tuple[tuple[str, Qualifier], ...]:
    """The name and qualifier of each operand of an op of a kind."""
    spans = decoded_spans(kind, count, segments)
    return tuple((span.name, kind.QUALIFIERS[span.name]) for span in spans for _ in range(span.start, span.stop))


class Instruction(QualifiedOp):
    """An instruction on addresses. Operands are declared in the order out, inout, in, scratch."""

    NEEDS_KERNEL: ClassVar[bool] = True
    """Whether it needs machine code of its own."""
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs (@out operand, @in operand) that may be the same buffer; `*` stands for every @in operand."""
    BODY_OPERANDS: ClassVar[frozenset[str]] = frozenset()
    """Names of operands that only bodies use; they are printed before the bodies."""
    BODY_PROPERTIES: ClassVar[frozenset[str]] = frozenset()
    """Names of properties that are printed with the bodies."""

    @classmethod
    def of(
        cls,
        *groups: SSAValue | Sequence[SSAValue] | None,
        properties: Mapping[str, Attribute] | None = None,
        location: LocationAttr | None = None,
    ) -> Self:
        """Build the instruction; operands come in the order of their definition, `None` for an absent one."""
        definitions = cls.get_irdl_definition().operands
        padded = [*groups, *[None] * (len(definitions) - len(groups))]
        lists = [[] if g is None else [g] if isinstance(g, SSAValue) else list(g) for g in padded]
        return cls.create(
            operands=[value for group in lists for value in group],
            properties={**(properties or {}), "operandSegmentSizes": to_segments([len(g) for g in lists])},
            location=location,
        )

    def may_share(self, output: str, input_: str) -> bool:
        """Whether the @out operand of that name may be the same buffer as the @in operand of that name."""
        return any(out == output and source in ("*", input_) for out, source in self.INPLACE)

    def set_operands(self, groups: Mapping[str, Sequence[SSAValue]]) -> None:
        """Replace the operands of these names."""
        chosen = [
            list(groups[name]) if name in groups else [value for value in group if value is not None]
            for name, group in operand_groups(self)
        ]
        self.operands = [value for group in chosen for value in group]
        self.properties["operandSegmentSizes"] = to_segments([len(group) for group in chosen])

    def print(self, printer: Printer) -> None:
        own = [(name, group) for name, group in operand_groups(self) if name not in self.BODY_OPERANDS]
        print_operands(printer, self.QUALIFIERS, own)
        shown = visible_properties(self)
        print_properties(printer, {name: value for name, value in shown.items() if name not in self.BODY_PROPERTIES})
        self.print_bodies(printer)

    def print_bodies(self, printer: Printer) -> None:
        """Print the regions."""
        for region in self.regions:
            printer.print_string(" ")
            printer.print_region(region)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        definition = cls.get_irdl_definition()
        own = [(name, declared) for name, declared in definition.operands if name not in cls.BODY_OPERANDS]
        groups = parse_operands(parser, cls, own)
        properties = parse_properties(parser)
        regions, further, maps = cls.parse_bodies(parser)
        groups |= further
        properties |= maps
        lists = [groups.get(name, []) for name, _ in definition.operands]
        properties["operandSegmentSizes"] = to_segments([len(group) for group in lists])
        known, rest = split_known(properties, definition.properties)
        return cls.create(
            operands=[value for group in lists for value in group], properties=known, attributes=rest, regions=regions
        )

    @classmethod
    def parse_bodies(cls, parser: Parser) -> tuple[list[Region], dict[str, list[SSAValue]], dict[str, Attribute]]:
        """Parse what `print_bodies` prints: the regions, and the operands and properties in front of them."""
        return [parser.parse_region() for _ in cls.get_irdl_definition().regions], {}, {}


def print_operands(
    printer: Printer,
    qualifiers: Mapping[str, Qualifier],
    groups: Sequence[tuple[str, Sequence[SSAValue | None]]],
    start: str = " ",
) -> None:
    """Print `@out %a, @in %b, …`; an absent operand prints as `none`, unless nothing follows in its qualifier."""
    items: list[tuple[Qualifier, SSAValue | None]] = [
        (qualifiers[name], value) for name, group in groups for value in group
    ]
    kept = [
        (qualifier, value)
        for position, (qualifier, value) in enumerate(items)
        if value is not None or any(q is qualifier and v is not None for q, v in items[position:])
    ]
    for position, (qualifier, value) in enumerate(kept):
        printer.print_string(f"{', ' if position else start}@{qualifier.value} ")
        printer.print_string("none") if value is None else printer.print_operand(value)


def parse_operands(
    parser: Parser, kind: type[Instruction], definitions: Sequence[tuple[str, object]]
) -> dict[str, list[SSAValue]]:
    """Parse what `print_operands` prints: the values of the operands that are present, by name."""
    given: dict[Qualifier, list[SSAValue | None]] = {qualifier: [] for qualifier in Qualifier}
    while (name := parser.parse_optional_symbol_name()) is not None:
        if name.data not in {qualifier.value for qualifier in Qualifier}:
            parser.raise_error(f"'@{name.data}' is no qualifier: use @out, @inout, @in or @scratch")
        absent = parser.parse_optional_keyword("none")
        given[Qualifier(name.data)].append(None if absent else parse_defined_value(parser))
        if parser.parse_optional_punctuation(",") is None:
            break
    groups: dict[str, list[SSAValue]] = {}
    for operand, declared in definitions:
        waiting = given[kind.QUALIFIERS[operand]]
        taken = list(waiting) if is_variadic(declared) else waiting[:1]
        del waiting[: len(taken)]
        present = [value for value in taken if value is not None]
        if not present and not isinstance(declared, VariadicDef):
            parser.raise_error(f"operand '@{kind.QUALIFIERS[operand].value} {operand}' of {kind.name} is missing")
        groups[operand] = present
    if surplus := [f"@{qualifier.value}" for qualifier, values in given.items() if values]:
        parser.raise_error(f"{kind.name} has too many operands behind {', '.join(surplus)}")
    return groups

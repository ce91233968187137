"""Accesses to memory: their orderings, and the syntax that loads, stores and atomics share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, opt_prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

ORDERINGS = {
    "not_atomic": 0,
    "unordered": 1,
    "monotonic": 2,
    "acquire": 4,
    "release": 5,
    "acq_rel": 6,
    "seq_cst": 7,
}
"""Upstream's `AtomicOrdering` enumeration (the C ABI leaves out 3, `consume`)."""

ORDERING_NAMES = {number: name for name, number in ORDERINGS.items()}


def ordering_attr(name: str) -> IntegerAttr[IntegerType]:
    """Return the ordering called `name` as upstream stores it. Raises `KeyError` for an unknown name."""
    return IntegerAttr(ORDERINGS[name], i64)


def ordering_name(attr: IntegerAttr[IntegerType] | None) -> str:
    """Return the name of a stored ordering; an absent one is `not_atomic`."""
    return "not_atomic" if attr is None else ORDERING_NAMES[attr.value.data]


def parse_ordering(parser: Parser) -> str:
    """Parse the name of an ordering."""
    begin = parser.pos
    if (name := parser.parse_identifier("an atomic ordering")) not in ORDERINGS:
        parser.raise_error(f"unknown atomic ordering '{name}'; there are {', '.join(ORDERINGS)}", begin, parser.pos)
    return name


def parse_syncscope(parser: Parser) -> StringAttr | None:
    """Parse `syncscope("name")`, if it is there."""
    if parser.parse_optional_keyword("syncscope") is None:
        return None
    with parser.in_parens():
        return StringAttr(parser.parse_str_literal())


def print_syncscope(printer: Printer, scope: StringAttr | None) -> None:
    """Print what `parse_syncscope` reads, with a leading space."""
    if scope is not None:
        printer.print_string(" syncscope(")
        printer.print_string_literal(scope.data)
        printer.print_string(")")


def present(**attributes: Attribute | bool | None) -> dict[str, Attribute]:
    """Return the given properties without those that are None or False; True stands for a unit attribute."""
    return {
        name: UnitAttr() if value is True else value
        for name, value in attributes.items()
        if value is not None and value is not False
    }


class MemoryAccess(IRDLOperation, ABC):
    """
    An access to memory, in the syntax that loads, stores and atomics share.

    `[flags] [word] operands [orderings] [more flags] {alignment, nontemporal, others} : types`, where orderings are
    `atomic syncscope("name") acquire`, without the word `atomic` for ops that are always atomic.
    """

    FLAGS: ClassVar[Sequence[str]] = ("volatile",)
    """Keywords in front of the operands; a property has the same name, or `volatile_`."""
    MORE_FLAGS: ClassVar[Sequence[str]] = ()
    """Keywords behind the orderings."""
    WORDS: ClassVar[Sequence[str]] = ()
    """The words of the property `bin_op`, indexed by their numbers."""
    ORDERINGS: ClassVar[Sequence[str]] = ("ordering",)
    """Properties that are orderings."""
    IS_ATOMIC: ClassVar[bool] = True
    """Whether it is always atomic."""

    syncscope = opt_prop_def(StringAttr)
    alignment = opt_prop_def(IntegerAttr[IntegerType])
    volatile_ = opt_prop_def(UnitAttr)

    @classmethod
    def operand_types_of(cls, types: Sequence[Attribute]) -> Sequence[Attribute]:
        """The types of all operands, from those that are printed."""
        return types

    @classmethod
    @abstractmethod
    def result_types_of(cls, parser: Parser, types: Sequence[Attribute]) -> Sequence[Attribute]:
        """The types of results, from the printed types of operands, or parsed after these."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        definition = cls.get_irdl_definition()
        properties = _parsed_flags(parser, cls.FLAGS)
        if cls.WORDS:
            word = parser.expect(lambda: parser.parse_optional_keyword_in(cls.WORDS), "expected an atomic operation")
            properties["bin_op"] = IntegerAttr(cls.WORDS.index(word), i64)
        operands = [parser.parse_unresolved_operand()]
        while len(operands) < len(definition.operands):
            parser.parse_punctuation(",")
            operands.append(parser.parse_unresolved_operand())
        orderings = ["not_atomic"] * len(cls.ORDERINGS)
        if cls.IS_ATOMIC or parser.parse_optional_keyword("atomic"):
            properties |= present(syncscope=parse_syncscope(parser))
            orderings = [parse_ordering(parser) for _ in cls.ORDERINGS]
        properties |= dict(zip(cls.ORDERINGS, map(ordering_attr, orderings), strict=True))
        properties |= _parsed_flags(parser, cls.MORE_FLAGS)
        attributes = parser.parse_optional_attr_dict()
        for name in _IN_DICTIONARY & attributes.keys() & definition.properties.keys():
            properties[name] = attributes.pop(name)
        if not isinstance(properties.get("alignment"), IntegerAttr | None):
            parser.raise_error("expected 'alignment' to be an integer")
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        while parser.parse_optional_punctuation(","):
            types.append(parser.parse_type())
        return cls.create(
            operands=parser.resolve_operands(operands, cls.operand_types_of(types), parser.pos),
            result_types=cls.result_types_of(parser, types),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        words = [self.WORDS[_number(self.properties["bin_op"])]] if self.WORDS else []
        printer.print_string("".join(f" {word}" for word in [*self._flags(self.FLAGS), *words]) + " ")
        printer.print_list(self.operands, printer.print_ssa_value)
        orderings = [ORDERING_NAMES[_number(self.properties.get(name))] for name in self.ORDERINGS]
        if self.IS_ATOMIC or orderings != ["not_atomic"]:
            printer.print_string("" if self.IS_ATOMIC else " atomic")
            print_syncscope(printer, self.syncscope)
            printer.print_string("".join(f" {name}" for name in orderings))
        printer.print_string("".join(f" {word}" for word in self._flags(self.MORE_FLAGS)))
        own = {name: value for name, value in self.properties.items() if name in _IN_DICTIONARY}
        printer.print_op_attributes({**dict(sorted(own.items())), **self.attributes})
        printer.print_string(" : ")
        self.print_types(printer)

    def print_types(self, printer: Printer) -> None:
        """Print the types that `operand_types_of` and `result_types_of` read."""
        printer.print_list([operand.type for operand in self.operands], printer.print_attribute)

    def _flags(self, words: Sequence[str]) -> list[str]:
        """Those keywords whose property is set."""
        return [word for word in words if _property_of(word) in self.properties]

    def verify_(self) -> None:
        if self.WORDS and not 0 <= (word := _number(self.properties["bin_op"])) < len(self.WORDS):
            raise VerifyException(f"'{self.name}' has the operation {word}, which is none")
        for name in self.ORDERINGS:
            number = _number(self.properties.get(name))
            if number not in ORDERING_NAMES:
                raise VerifyException(f"'{self.name}' has the ordering {number}, which is none")
            if not number and not self.IS_ATOMIC and self.syncscope is not None:
                raise VerifyException(f"'{self.name}' has a syncscope, but is not atomic")


_IN_DICTIONARY = frozenset({"alignment", "nontemporal"})
"""Properties that print among the attributes."""


def _number(attribute: Attribute | None) -> int:
    """The number of an enumeration; an absent one is 0."""
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def _property_of(keyword: str) -> str:
    """The property that a keyword sets."""
    return "volatile_" if keyword == "volatile" else keyword


def _parsed_flags(parser: Parser, words: Sequence[str]) -> dict[str, Attribute]:
    """The properties of the keywords that are present."""
    return {_property_of(word): UnitAttr() for word in words if parser.parse_optional_keyword(word)}

"""Memory orderings, and the `atomic syncscope("…") acquire` syntax that loads, stores and atomics share."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation
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


def parse_atomic(parser: Parser) -> tuple[str, StringAttr | None]:
    """Parse `atomic syncscope("name") ordering` of a load or a store; absent means `not_atomic`."""
    if parser.parse_optional_keyword("atomic") is None:
        return "not_atomic", None
    scope = parse_syncscope(parser)
    return parse_ordering(parser), scope


def print_atomic(printer: Printer, ordering: str, scope: StringAttr | None) -> None:
    """Print what `parse_atomic` reads, with a leading space."""
    if ordering != "not_atomic":
        printer.print_string(" atomic")
        print_syncscope(printer, scope)
        printer.print_string(f" {ordering}")


def present(**attributes: Attribute | bool | None) -> dict[str, Attribute]:
    """Return the given properties without those that are None or False; True stands for a unit attribute."""
    return {
        name: UnitAttr() if value is True else value
        for name, value in attributes.items()
        if value is not None and value is not False
    }


def verify_atomic(op: Operation, ordering: IntegerAttr[IntegerType] | None, scope: StringAttr | None) -> None:
    """Check that the ordering of a load or a store is one, and that what has none has no scope."""
    number = 0 if ordering is None else ordering.value.data
    if (name := ORDERING_NAMES.get(number)) is None:
        raise VerifyException(f"'{op.name}' has the ordering {number}, which is none")
    if name == "not_atomic" and scope is not None:
        raise VerifyException(f"'{op.name}' has a syncscope, but is not atomic")

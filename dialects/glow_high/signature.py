"""
The signature of a function in text: names of placeholders, or arguments and results.

A function of `glow_high` or `glow_low` is bound to placeholders of the module, `@main(@x, @y)`. Where nobody needs
their names, as in tests of passes, it is written with arguments, `@main(%x: tensor<4xf32>) -> tensor<4xf32>`, or
`@main(@in %x: memref<4xf32>, @out %y: memref<4xf32>)`: reading makes placeholders of them (`ir/anonymous_storage.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ArrayAttr, MemRefType, NoneAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Block, BlockArgument
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.support.dataclass import dataclass

if TYPE_CHECKING:
    from glow_mlir.dialects.glow_high.storage import FunctionOp

ARGUMENT_ROLES = "argument_roles"
"""The property of a function with arguments that lists the placeholder role of each argument."""

ROLES = {"in": "input", "out": "output", "inout": "state"}
"""Qualifier of an argument of `glow_low` → its role; those of `glow_high` have none, and are inputs."""

RETURN = "glow_high.return"


@dataclass
class Signature:
    """The text between the name of a function and its body, parsed."""

    bindings: list[str] = field(default_factory=list[str])
    arguments: list[Parser.Argument] = field(default_factory=list[Parser.Argument])
    roles: list[str] = field(default_factory=list[str])
    results: Sequence[Attribute] = ()
    position: int = 0
    """The position of the results in the text."""

    def properties(self) -> dict[str, Attribute]:
        """The properties of the function, before its arguments become storage."""
        return {ARGUMENT_ROLES: ArrayAttr([StringAttr(role) for role in self.roles])} if self.arguments else {}

    def check_results(self, parser: Parser, block: Block) -> None:
        """Raise a `ParseError` where the body returns other types."""
        last = block.last_op
        returned = last.operand_types if last is not None and last.name == RETURN else ()
        if tuple(returned) != tuple(self.results):
            wanted, found = (", ".join(map(str, types)) or "nothing" for types in (self.results, returned))
            parser.raise_error(f"the function says that it gives {wanted}, and returns {found}", self.position)


def parse_signature(parser: Parser, is_qualified: bool) -> Signature:
    """
    Parse names of placeholders, or arguments and results.

    Arguments are buffers with a qualifier where the function `is_qualified`, one of `glow_low`; it has no results.
    """
    signature = Signature()
    parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_entry(parser, signature, is_qualified))
    if signature.bindings and signature.arguments:
        parser.raise_error("a function has names of placeholders or arguments, not both")
    signature.position = parser.pos
    if not is_qualified and parser.parse_optional_punctuation("->"):
        enclosed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        signature.results = [parser.parse_type()] if enclosed is None else enclosed
        labels = result_labels(len(signature.results))
        if taken := [argument.name.text[1:] for argument in signature.arguments if argument.name.text[1:] in labels]:
            parser.raise_error(
                f"%{taken[0]} is what a result is called: call the argument otherwise", signature.position
            )
    return signature


def result_labels(count: int) -> list[str]:
    """The public names of that number of results: `result`, `result1`, `result2`, …"""
    return [f"result{number or ''}" for number in range(count)]


def _parse_entry(parser: Parser, signature: Signature, is_qualified: bool) -> None:
    """Parse one binding or argument."""
    begin = parser.pos
    name = parser.parse_optional_symbol_name()
    argument = parser.parse_optional_argument()
    if argument is None:
        signature.bindings.append(parser.raise_error("expected a name or an argument") if name is None else name.data)
        return
    if is_qualified != (name is not None) or (name is not None and name.data not in ROLES):
        use = "@in, @out or @inout" if is_qualified else "none"
        given = "no qualifier" if name is None else f"'@{name.data}'"
        parser.raise_error(f"the argument has {given}: use {use}", begin)
    kind = MemRefType if is_qualified else TensorType
    if not isinstance(argument.type, kind):
        parser.raise_error(f"an argument is a {kind.name} here, not {argument.type}", begin)
    if isinstance(argument.type, MemRefType) and not _is_plain(cast("MemRefType[Attribute]", argument.type)):
        parser.raise_error(f"an argument is dense, and in no memory space of its own, unlike {argument.type}", begin)
    signature.arguments.append(argument)
    signature.roles.append("input" if name is None else ROLES[name.data])


def _is_plain(type_: MemRefType[Attribute]) -> bool:
    """Whether a buffer is dense and in the default memory."""
    return isinstance(type_.layout, NoneAttr) and isinstance(type_.memory_space, NoneAttr | SizesAttr)


def print_signature(printer: Printer, function: FunctionOp) -> None:
    """Print names of placeholders, or arguments and results."""
    roles = cast("ArrayAttr[StringAttr]", function.argument_roles or ArrayAttr([]))
    qualified = function.name.startswith("glow_low.")
    words = {role: f"@{word} " if qualified else "" for word, role in ROLES.items()}

    def print_argument(pair: tuple[StringAttr, BlockArgument]) -> None:
        printer.print_string(words[pair[0].data])
        printer.print_block_argument(pair[1])

    with printer.in_parens():
        if function.block.args:
            printer.print_list(list(zip(roles.data, function.block.args, strict=True)), print_argument)
        else:
            printer.print_list(function.binding_names, printer.print_symbol_name)
    last = function.block.last_op
    if last is not None and last.name == RETURN and last.operands:
        printer.print_string(" -> ")
        types = list(last.operand_types)
        if len(types) == 1:
            printer.print_attribute(types[0])
        else:
            with printer.in_parens():
                printer.print_list(types, printer.print_attribute)

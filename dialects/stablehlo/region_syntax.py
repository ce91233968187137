"""The readable forms of operations with regions: `while`, `reduce` and `scan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from glow_mlir.dialects.stablehlo.attributes import parse_integers
from glow_mlir.dialects.stablehlo.field_syntax import Properties, print_integers
from glow_mlir.dialects.stablehlo.special_syntax import SpecialForm
from glow_mlir.dialects.stablehlo.syntax import build, parse_attributes, parse_types, print_attributes, print_types

# ---- stablehlo.while(%x = %a, …) : types attributes {…} cond {…} do {…} ----


def _parse_while(kind: type[IRDLOperation], parser: Parser) -> Operation:
    def item() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    begin = parser.pos
    pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, item)
    types: Sequence[Attribute] = ()
    if pairs:
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    if len(types) != len(pairs):
        parser.raise_error(f"expected {len(pairs)} types for as many operands, not {len(types)}", begin)
    given = parser.parse_optional_attr_dict_with_keyword()
    arguments = [argument.resolve(type_) for (argument, _), type_ in zip(pairs, types, strict=True)]
    parser.parse_keyword("cond")
    condition = parser.parse_region(arguments)
    parser.parse_keyword("do")
    regions = [condition, parser.parse_region(arguments)]
    attributes = {} if given is None else dict(given.data)
    return build(kind, parser, [operand for _, operand in pairs], (types, types), {}, attributes, regions)


def _print_while(op: Operation, printer: Printer) -> None:
    condition, body = op.regions

    def item(argument: BlockArgument, other: BlockArgument, operand: SSAValue) -> None:
        name = printer.print_ssa_value(argument)
        cast("Any", printer)._ssa_values[other] = name  # Both regions have the same names.
        printer.print_string(" = ")
        printer.print_operand(operand)

    items = list(zip(condition.block.args, body.block.args, op.operands, strict=True))
    with printer.in_parens():
        printer.print_list(items, lambda each: item(*each))
    if items:
        printer.print_string(" : ")
        printer.print_list(op.operand_types, printer.print_attribute)
    print_attributes(op, printer, (), keyword=True)
    for word, region in (("\ncond ", condition), (" do ", body)):
        printer.print_string(word)
        printer.print_region(region, print_entry_block_args=False, print_empty_block=False)


# ---- stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1] : types ----
# ---- stablehlo.reduce(%a init: %b), … across dimensions = [1] : types reducer(%x: type, %y: type) … {…} ----

SHORT = frozenset(f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor"))
"""The operations that a reduction `applies`: those whose operands may be exchanged."""


def _parse_reduce(kind: type[IRDLOperation], parser: Parser) -> Operation:
    def item() -> tuple[UnresolvedOperand, UnresolvedOperand]:
        with parser.in_parens():
            operand = parser.parse_unresolved_operand()
            parser.parse_keyword("init")
            parser.parse_punctuation(":")
            return operand, parser.parse_unresolved_operand()

    pairs = parser.parse_comma_separated_list(parser.Delimiter.NONE, item)
    applied = parser.parse_identifier() if parser.parse_optional_keyword("applies") is not None else ""
    begin = parser.pos
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    properties: Properties = {"dimensions": DenseArrayBase.from_list(i64, parse_integers(parser))}
    attributes = parse_attributes(parser, properties)
    types = parse_types(parser, "function", 2 * len(pairs))
    operands = [operand for operand, _ in pairs] + [initial for _, initial in pairs]
    if applied:
        body = _applied(parser, applied, types[0], begin)
    else:
        parser.parse_keyword("reducer")
        body = parser.parse_region(_reducer(parser, len(pairs)))
    return build(kind, parser, operands, types, properties, attributes, [body])


def _applied(parser: Parser, name: str, types: Sequence[Attribute], position: int) -> Region:
    """The body of a reduction that applies an operation to elements of the type of the initial value."""
    found = parser.ctx.get_optional_op(name)
    if found is None or name not in SHORT or len(types) != 2:
        parser.raise_error(f"a reduction of one tensor applies {', '.join(sorted(SHORT))}, not '{name}'", position)
    block = Block(arg_types=[types[1], types[1]])
    inner = found.create(operands=block.args, result_types=[types[1]])
    ending = parser.ctx.get_op("stablehlo.return")
    block.add_ops([inner, ending.create(operands=inner.results)])
    return Region(block)


def _reducer(parser: Parser, count: int) -> list[Parser.Argument]:
    """Read `(%x: type, %y: type) …`, arguments of the body of a reduction of `count` tensors, in the body's order."""

    def argument() -> Parser.Argument:
        found = parser.parse_argument()
        found.location = parser.parse_optional_location()
        return found

    begin = parser.pos
    pairs = [parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument) for _ in range(count)]
    if any(len(each) != 2 for each in pairs):
        parser.raise_error("expected two arguments for each tensor", begin)
    return [each[at] for at in (0, 1) for each in pairs]


def _is_short(op: Operation) -> bool:
    """Whether a reduction only applies an operation that can be named: it is the default where it is read."""
    block = op.regions[0].block
    inner, ending = block.first_op, block.last_op
    if len(block.args) != 2 or inner is None or ending is None or inner.next_op is not ending:
        return False
    is_plain = inner.name in SHORT and not inner.attributes and not inner.properties and not ending.attributes
    types = {each.type for each in (*block.args, *inner.results)}
    is_whole = [*inner.operands] == [*block.args] and [*ending.operands] == [*inner.results]
    return is_plain and is_whole and ending.name == "stablehlo.return" and types == {op.operands[-1].type}


def _print_reduce(op: Operation, printer: Printer) -> None:
    count = len(op.operands) // 2

    def item(pair: tuple[SSAValue, SSAValue]) -> None:
        with printer.in_parens():
            printer.print_operand(pair[0])
            printer.print_string(" init: ")
            printer.print_operand(pair[1])

    printer.print_list(zip(op.operands[:count], op.operands[count:], strict=True), item)
    block = op.regions[0].block
    is_short = _is_short(op)
    if is_short and block.first_op is not None:
        printer.print_string(f" applies {block.first_op.name}")
    printer.print_string(" across dimensions = ")
    print_integers(printer, cast("DenseArrayBase[Any]", op.properties["dimensions"]).get_values())
    print_attributes(op, printer, ("dimensions",))
    print_types(op, printer, "function")
    if is_short:
        return
    printer.print_string("\n reducer")
    for pair in zip(block.args[:count], block.args[count:], strict=True):
        with printer.in_parens():
            printer.print_list(pair, printer.print_block_argument)
        printer.print_string(" ")
    printer.print_region(op.regions[0], print_entry_block_args=False, print_empty_block=False)


# ---- chlo.scan(%a) inits (%b) dimension=0 attributes {…} {…} : types ----


def _parse_scan(kind: type[IRDLOperation], parser: Parser) -> Operation:
    def operands() -> list[UnresolvedOperand]:
        return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)

    inputs = operands()
    parser.parse_keyword("inits")
    initial = operands()
    parser.parse_keyword("dimension")
    parser.parse_punctuation("=")
    properties: Properties = {"dimension": IntegerAttr(parser.parse_integer(), i64)}
    given = parser.parse_optional_attr_dict_with_keyword()
    body = parser.parse_region()
    types = parse_types(parser, "function", len(inputs) + len(initial))
    properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(inputs), len(initial)])
    properties["resultSegmentSizes"] = DenseArrayBase.from_list(i32, [len(types[1]) - len(initial), len(initial)])
    attributes = {} if given is None else dict(given.data)
    return build(kind, parser, [*inputs, *initial], types, properties, attributes, [body])


def _print_scan(op: Operation, printer: Printer) -> None:
    segments = cast("DenseArrayBase[Any]", op.properties["operandSegmentSizes"]).get_values()
    printer.print_operands(op.operands[: segments[0]])
    printer.print_string(" inits ")
    printer.print_operands(op.operands[segments[0] :])
    printer.print_string(f" dimension={cast('IntegerAttr[Any]', op.properties['dimension']).value.data}")
    print_attributes(op, printer, ("dimension", "operandSegmentSizes", "resultSegmentSizes"), keyword=True)
    printer.print_string(" ")
    printer.print_region(op.regions[0])
    print_types(op, printer, "function")


WHILE = SpecialForm(_parse_while, _print_while)
REDUCE = SpecialForm(_parse_reduce, _print_reduce)
SCAN = SpecialForm(_parse_scan, _print_scan)

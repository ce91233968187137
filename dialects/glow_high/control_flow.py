"""Branches and loops over operators, and what their regions yield."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.control_flow import ControlFlowOp, verify_scalar, verify_trips
from glow_mlir.dialects.glow_high.base import (
    SEGMENTS,
    HighOp,
    parse_defined_value,
    parse_optional_value,
    to_segments,
)
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import require, tensor

INDEX = tensor((), i64)
"""The type of the number of a trip."""


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    The end of a region of a branch or loop: what it gives to the op around it.

    ```mlir
    glow_high.yield %0, %1
    ```
    """

    name = "glow_high.yield"

    values = var_operand_def(TENSOR)

    traits = traits_def(IsTerminator(), Pure(), KnownAttributes())

    @classmethod
    def of(cls, values: Sequence[SSAValue], location: LocationAttr | None = None) -> YieldOp:
        """Yield `values`."""
        return cls.create(operands=values, location=location)

    def verify_(self) -> None:
        require(isinstance(self.parent_op(), RegionOp | None), "only a region of a branch or loop yields")

    def print(self, printer: Printer) -> None:
        if self.values:
            printer.print_string(" ")
            printer.print_list(self.values, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parser.parse_optional_undelimited_comma_separated_list(
            lambda: parse_optional_value(parser), lambda: parse_defined_value(parser)
        )
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=values or [], attributes=attributes)


class RegionOp(ControlFlowOp):
    """
    An op whose regions hold operators, as a function does, and end with what they yield.

    They read values around them, constants and inputs. State is read and saved in the function itself, so that an op
    with regions has no effects.
    """

    values = var_result_def(TENSOR)

    irdl_options = SEGMENTS
    traits = traits_def(RecursiveMemoryEffect(), KnownAttributes())

    def yielded(self, region: Region) -> tuple[SSAValue, ...]:
        """What a region yields."""
        last = region.block.last_op
        assert isinstance(last, YieldOp)
        return tuple(last.values)

    def verify_regions(self, noun: str, expected: Sequence[Attribute]) -> None:
        """Check where the op is, what its regions hold, and that they yield values of the `expected` types."""
        require(isinstance(self.parent_op(), FuncOp | RegionOp | None), f"{noun} belongs in a function of operators")
        for region in self.regions:
            block = region.block
            require(isinstance(block.last_op, YieldOp), f"a region of {noun} ends with what it yields")
            types = [value.type for value in self.yielded(region)]
            listed = ", ".join(map(str, expected)) or "nothing"
            require(types == list(expected), f"a region yields {', '.join(map(str, types)) or 'nothing'}, not {listed}")
            for op in block.ops:
                self._verify_held(op, block)

    def _verify_held(self, op: Operation, block: Block) -> None:
        if isinstance(op, GetOp):
            require(op.mutable is None, f"state @{op.storage_name} is read in the function itself")
            return
        fits = isinstance(op, HighOp | RegionOp) or op is block.last_op
        require(fits, f"a region of operators does not hold {op.name}")

    def print_types(self, printer: Printer) -> None:
        """Print the types of the results."""
        printer.print_op_attributes(self.attributes)
        if self.results:
            printer.print_string(" : ")
            printer.print_list(self.result_types, printer.print_attribute)


def _parse_types(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation(":") is None:
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


@irdl_op_definition
class IfOp(RegionOp):
    """
    What the one region or the other yields, as the only element of `condition` says.

    ```mlir
    %1 = glow_high.if %condition {
      %0 = glow_high.relu %x : tensor<4xf32>
      glow_high.yield %0
    } else {
      glow_high.yield %x
    } : tensor<4xf32>
    ```
    """

    name = "glow_high.if"

    condition = operand_def(TENSOR)
    then_region = region_def("single_block")
    else_region = region_def("single_block")

    def verify_(self) -> None:
        verify_scalar(self.condition, i1, "the condition")
        for region in self.regions:
            require(not region.block.args, "a region of a branch takes nothing")
        self.verify_regions("a branch", self.result_types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(" ")
        printer.print_region(self.then_region, print_entry_block_args=False)
        printer.print_string(" else ")
        printer.print_region(self.else_region, print_entry_block_args=False)
        self.print_types(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        condition = parse_defined_value(parser)
        regions = [parser.parse_region()]
        parser.parse_keyword("else")
        regions.append(parser.parse_region())
        attributes = parser.parse_optional_attr_dict()
        return cls.create(
            operands=[condition],
            result_types=_parse_types(parser),
            properties={"operandSegmentSizes": to_segments([1])},
            attributes=attributes,
            regions=regions,
        )


@irdl_op_definition
class LoopOp(RegionOp):
    """
    What a region yields when it has run several times; each trip takes what the one before yielded.

    How many trips there are is a number, `trips`, or the only element of `trip_count`; none where that is not positive.
    With a `condition`, a trip takes place only where its only element holds; each trip then yields the next condition
    in front of what it carries on. `%i` counts the trips from 0.

    ```mlir
    %sum = glow_high.loop %i = 8 (%a = %zero) {
      %0 = glow_high.add %a, %x : tensor<4xf32>
      glow_high.yield %0
    } : tensor<4xf32>
    %found = glow_high.loop %j = %n while %unfinished (%a = %x) {
      %0 = glow_high.sqrt %a : tensor<f32>
      %1 = glow_high.greater %0, %limit : tensor<i1>
      glow_high.yield %1, %0
    } : tensor<f32>
    ```
    """

    name = "glow_high.loop"

    trip_count = opt_operand_def(TENSOR)
    condition = opt_operand_def(TENSOR)
    initial = var_operand_def(TENSOR)
    trips = opt_prop_def(base(IntegerAttr))
    body = region_def("single_block")

    @property
    def index(self) -> SSAValue:
        """The number of the trip."""
        return self.body.block.args[0]

    @property
    def carried(self) -> tuple[SSAValue, ...]:
        """What a trip takes from the one before, or from `initial`."""
        return tuple(self.body.block.args[1:])

    @property
    def static_trips(self) -> int | None:
        """How many trips there are at most, where that is known; exactly so many without a condition."""
        return None if self.trips is None else integer(self.trips)

    def verify_(self) -> None:
        verify_trips(self.trips, self.trip_count, self.condition)
        types = [value.type for value in self.initial]
        require(
            [arg.type for arg in self.body.block.args] == [INDEX, *types],
            "the body takes the number of the trip, and values as they are carried in",
        )
        require(list(self.result_types) == types, "a loop gives values of the types that it carries")
        conditions = [] if self.condition is None else [self.condition.type]
        self.verify_regions("a loop", [*conditions, *types])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.index)
        if self.static_trips is not None:
            printer.print_string(f" = {self.static_trips}")
        if self.trip_count is not None:
            printer.print_string(" = ")
            printer.print_ssa_value(self.trip_count)
        if self.condition is not None:
            printer.print_string(" while ")
            printer.print_ssa_value(self.condition)
        if self.carried:
            printer.print_string(" ")
            with printer.in_parens():
                pairs = zip(self.carried, self.initial, strict=True)
                printer.print_list(pairs, lambda pair: _print_carried(printer, pair))
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        self.print_types(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        arguments = [parser.parse_argument(expect_type=False).resolve(INDEX)]
        properties: dict[str, Attribute] = {}
        groups: list[list[SSAValue]] = [[], [], []]
        if parser.parse_optional_punctuation("="):
            number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            if number is None:
                groups[0].append(parse_defined_value(parser))
            else:
                properties["trips"] = to_attribute(number)
        if parser.parse_optional_keyword("while"):
            groups[1].append(parse_defined_value(parser))
        pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_carried(parser)) or []
        for argument, value in pairs:
            arguments.append(argument.resolve(value.type))
            groups[2].append(value)
        region = parser.parse_region(arguments)
        attributes = parser.parse_optional_attr_dict()
        properties["operandSegmentSizes"] = to_segments([len(group) for group in groups])
        return cls.create(
            operands=[value for group in groups for value in group],
            result_types=_parse_types(parser),
            properties=properties,
            attributes=attributes,
            regions=[region],
        )


def _print_carried(printer: Printer, pair: tuple[SSAValue, SSAValue]) -> None:
    printer.print_ssa_value(pair[0])
    printer.print_string(" = ")
    printer.print_ssa_value(pair[1])


def _parse_carried(parser: Parser) -> tuple[Parser.UnresolvedArgument, SSAValue]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parse_defined_value(parser)

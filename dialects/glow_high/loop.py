"""Loops over operators: values carried from trip to trip, and tensors of which each trip reads or writes one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import base, opt_operand_def, opt_prop_def, region_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.control_flow import (
    CountedOp,
    TripsAttr,
    parse_trips,
    print_trips,
    trips_attribute,
    verify_trips,
)
from glow_mlir.dialects.glow_high.base import parse_defined_value, parse_optional_value, to_segments
from glow_mlir.dialects.glow_high.control_flow import INDEX, RegionOp, YieldOp
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.properties import ints, optional_ints_prop
from glow_mlir.dialects.shapes import element_of, require, sizes_of, tensor
from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.support.symbols import Size
from glow_mlir.xdsl_patches.definitions import op_definition


class Trips(NamedTuple):
    """When a loop ends: the number of trips, as a size or a value, and a condition; `None` where absent."""

    number: Size | SSAValue | None
    condition: SSAValue | None = None


class Rows(NamedTuple):
    """A tensor with a row for each trip along axis 0; if `reversed`, the first trip has the last row."""

    value: SSAValue
    reversed: bool = False


@op_definition
class LoopOp(RegionOp, CountedOp):
    """
    A loop whose region runs several times; each trip receives the values that the previous one yielded.

    The number of trips is a size, `trips`, or the only element of `trip_count`; there are none if it is not positive.
    With a `condition`, a trip runs only if the condition's only element holds; each trip then yields the next condition
    before the carried values. `%i` counts the trips from 0.

    If the number of trips is a size, a loop may scan tensors, `scanned`: each trip gets one row of each, a slice along
    axis 0 without that axis. After the carried values, a trip yields one row of each stacked result; these results come
    after the carried ones, and rows of trips that do not run because of a condition are 0. Tensors that are `reversed`
    are scanned or stacked from the last row to the first, which requires a static number of trips.

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
    %last, %sums = glow_high.loop %k = 8 (%a = %zero) over (%row = %rows reversed) {
      %0 = glow_high.add %a, %row : tensor<4xf32>
      glow_high.yield %0, %0
    } : tensor<4xf32>, tensor<8x4xf32> reversed
    ```
    """

    name = "glow_high.loop"

    trip_count = opt_operand_def(TENSOR)
    condition = opt_operand_def(TENSOR)
    initial = var_operand_def(TENSOR)
    scanned = var_operand_def(TENSOR)
    trips: TripsAttr | None = opt_prop_def(base(IntegerAttr) | base(SizesAttr))
    reversed_inputs: DenseArrayBase[Any] | None = optional_ints_prop()
    """Positions among `scanned`."""
    reversed_outputs: DenseArrayBase[Any] | None = optional_ints_prop()
    """Positions among `stacked`."""
    body = region_def("single_block")

    @classmethod
    def of(
        cls,
        trips: Trips,
        initial: Sequence[SSAValue],
        scanned: Sequence[Rows],
        body: Region,
        reversed_outputs: Sequence[bool] = (),
        location: LocationAttr | None = None,
    ) -> LoopOp:
        """The loop of a body that ends with its yield; `reversed_outputs` has a flag for each stacked result."""
        count = None if isinstance(trips.number, SSAValue) else trips.number
        groups = [
            [trips.number] if isinstance(trips.number, SSAValue) else [],
            [] if trips.condition is None else [trips.condition],
            list(initial),
            [rows.value for rows in scanned],
        ]
        properties = _reversals([rows.reversed for rows in scanned], reversed_outputs)
        properties["operandSegmentSizes"] = to_segments([len(group) for group in groups])
        if count is not None:
            properties["trips"] = trips_attribute(count)
        last = body.block.last_op
        assert isinstance(last, YieldOp)
        rows = last.values[len(groups[1]) + len(initial) :]
        stacked = [tensor((count or 0, *sizes_of(row)), element_of(row)) for row in rows]
        return cls.create(
            operands=[value for group in groups for value in group],
            result_types=[*(value.type for value in initial), *stacked],
            properties=properties,
            regions=[body],
            location=location,
        )

    @property
    def index(self) -> SSAValue:
        """The index of the trip."""
        return self.body.block.args[0]

    @property
    def carried(self) -> tuple[SSAValue, ...]:
        """The values that a trip takes from the previous one, or from `initial`."""
        return tuple(self.body.block.args[1 : 1 + len(self.initial)])

    @property
    def rows(self) -> tuple[SSAValue, ...]:
        """The rows that a trip takes from `scanned`."""
        return tuple(self.body.block.args[1 + len(self.initial) :])

    @property
    def finals(self) -> tuple[SSAValue, ...]:
        """The results that are the carried values after the last trip, or `initial`."""
        return tuple(self.results[: len(self.initial)])

    @property
    def stacked(self) -> tuple[SSAValue, ...]:
        """The results that have a row for each trip."""
        return tuple(self.results[len(self.initial) :])

    @property
    def over(self) -> list[Rows]:
        """The tensors behind `rows`, each with its direction."""
        backwards = ints(self.reversed_inputs)
        return [Rows(value, position in backwards) for position, value in enumerate(self.scanned)]

    @property
    def stacks(self) -> list[Rows]:
        """The results that are stacked, each with its direction."""
        backwards = ints(self.reversed_outputs)
        return [Rows(value, position in backwards) for position, value in enumerate(self.stacked)]

    def go_over(self, rows: Rows) -> SSAValue:
        """Scan another tensor, which has a row for each trip; return the row that a trip gets."""
        backwards = [other.reversed for other in self.over] + [rows.reversed]
        counts = [int(self.trip_count is not None), int(self.condition is not None), len(self.initial)]
        self.operands = [*self.operands, rows.value]
        self.properties["operandSegmentSizes"] = to_segments([*counts, len(backwards)])
        self.properties |= _reversals(backwards, ())
        block = self.body.block
        return block.insert_arg(tensor(sizes_of(rows.value)[1:], element_of(rows.value)), len(block.args))

    def verify_(self) -> None:
        verify_trips(self.trips, self.trip_count, self.condition)
        types = [value.type for value in self.initial]
        rows = [self._row_type(value) for value in self.scanned]
        require(
            [arg.type for arg in self.body.block.args] == [INDEX, *types, *rows],
            "the body takes the number of the trip, values as they are carried in, and rows of what it goes over",
        )
        require([value.type for value in self.finals] == types, "a loop gives values of the types that it carries")
        backwards = self.reversed_inputs or self.reversed_outputs
        require(not backwards or self.static_trips is not None, "what is reversed has a number of rows")
        _verify_positions(ints(self.reversed_inputs), len(self.scanned))
        _verify_positions(ints(self.reversed_outputs), len(self.stacked))
        conditions = [] if self.condition is None else [self.condition.type]
        self.verify_regions("a loop", [*conditions, *types, *map(self._row_type, self.stacked)])

    def _row_type(self, value: SSAValue) -> Attribute:
        """The type of a trip's row of a scanned or stacked tensor."""
        sizes = sizes_of(value)
        fits = bool(sizes) and self.size_of_trips is not None and sizes[0] == self.size_of_trips
        require(fits, f"a loop goes over tensors of as many rows as it has trips, not {value.type}")
        return tensor(sizes[1:], element_of(value))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.index)
        if self.trips is not None:
            printer.print_string(" = ")
            print_trips(printer, self.trips)
        if self.trip_count is not None:
            printer.print_string(" = ")
            printer.print_ssa_value(self.trip_count)
        if self.condition is not None:
            printer.print_string(" while ")
            printer.print_ssa_value(self.condition)
        _print_bound(printer, "", self.carried, [Rows(value) for value in self.initial])
        _print_bound(printer, " over", self.rows, self.over)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        self.print_types(printer)

    def print_type(self, printer: Printer, position: int) -> None:
        super().print_type(printer, position)
        if position - len(self.initial) in ints(self.reversed_outputs):
            printer.print_string(" reversed")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        arguments = [parser.parse_argument(expect_type=False).resolve(INDEX)]
        properties: dict[str, Attribute] = {}
        groups: list[list[SSAValue]] = [[], [], [], []]
        if parser.parse_optional_punctuation("="):
            if (computed := parse_optional_value(parser)) is not None:
                groups[0].append(computed)
            else:
                properties["trips"] = parse_trips(parser)
        if parser.parse_optional_keyword("while"):
            groups[1].append(parse_defined_value(parser))
        for argument, rows in _parse_bound(parser):
            arguments.append(argument.resolve(rows.value.type))
            groups[2].append(rows.value)
        backwards: list[bool] = []
        for argument, rows in _parse_bound(parser) if parser.parse_optional_keyword("over") else []:
            sizes = sizes_of(rows.value)
            arguments.append(argument.resolve(tensor(sizes[1:], element_of(rows.value))))
            groups[3].append(rows.value)
            backwards.append(rows.reversed)
        region = parser.parse_region(arguments)
        attributes = parser.parse_optional_attr_dict()
        types = _parse_result_types(parser)
        properties |= _reversals(backwards, [is_reversed for _, is_reversed in types[len(groups[2]) :]])
        properties["operandSegmentSizes"] = to_segments([len(group) for group in groups])
        return cls.create(
            operands=[value for group in groups for value in group],
            result_types=[type_ for type_, _ in types],
            properties=properties,
            attributes=attributes,
            regions=[region],
        )


def _reversals(inputs: Sequence[bool], outputs: Sequence[bool]) -> dict[str, Attribute]:
    """The properties for reversed tensors, from a flag for each tensor."""
    found: dict[str, Attribute] = {}
    for name, flags in (("reversed_inputs", inputs), ("reversed_outputs", outputs)):
        if any(flags):
            found[name] = to_attribute(tuple(position for position, is_reversed in enumerate(flags) if is_reversed))
    return found


def _verify_positions(positions: Sequence[int], count: int) -> None:
    fits = len(set(positions)) == len(positions) and all(0 <= position < count for position in positions)
    require(fits, f"what is reversed is told by different numbers from 0 to {count - 1}")


def _print_bound(printer: Printer, keyword: str, arguments: Sequence[SSAValue], bound: Sequence[Rows]) -> None:
    """Print ` (%a = %x, %b = %y reversed)` behind a keyword; nothing where there are no arguments."""
    if not arguments:
        return
    printer.print_string(f"{keyword} ")
    with printer.in_parens():
        printer.print_list(zip(arguments, bound, strict=True), lambda pair: _print_pair(printer, *pair))


def _print_pair(printer: Printer, argument: SSAValue, rows: Rows) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(rows.value)
    if rows.reversed:
        printer.print_string(" reversed")


def _parse_bound(parser: Parser) -> list[tuple[Parser.UnresolvedArgument, Rows]]:
    """Parse what `_print_bound` prints behind its keyword."""
    return parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_pair(parser)) or []


def _parse_pair(parser: Parser) -> tuple[Parser.UnresolvedArgument, Rows]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    value = parse_defined_value(parser)
    return argument, Rows(value, parser.parse_optional_keyword("reversed") is not None)


def _parse_result_types(parser: Parser) -> list[tuple[Attribute, bool]]:
    """Parse the types of the results, and which of them are reversed."""
    if parser.parse_optional_punctuation(":") is None:
        return []
    return parser.parse_comma_separated_list(
        parser.Delimiter.NONE,
        lambda: (parser.parse_type(), parser.parse_optional_keyword("reversed") is not None),
    )

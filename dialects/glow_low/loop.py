"""Loops over instructions, and windows: views that move from trip to trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, TypedDict

from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    base,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.control_flow import (
    CountedOp,
    TripsAttr,
    parse_trips,
    print_trips,
    trips_attribute,
    verify_trips,
)
from glow_mlir.dialects.glow_high.base import parse_defined_value, to_segments
from glow_mlir.dialects.glow_low.base import BUFFER, Qualifier
from glow_mlir.dialects.glow_low.control_flow import RegionOp, parse_optional_read, parse_read, print_read
from glow_mlir.dialects.glow_low.memory import (
    AddressOp,
    Buffer,
    ViewOp,
    offset_of,
    root_of,
)
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.properties import ints, ints_prop
from glow_mlir.dialects.shapes import require
from glow_mlir.dialects.sizes import SizesAttr, largest, smallest
from glow_mlir.support.symbols import Size
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class LoopOp(RegionOp, CountedOp):
    """
    Execute instructions several times, one trip after the other; `%i` counts the trips from 0.

    The number of trips is a size, `trips`, or the only element of `trip_count`, read before the first trip; there are
    none if it is not positive. With a `condition`, each trip begins only if the condition's only element holds at that
    time. Values pass from one trip to the next in buffers outside the loop. Windows are parts of buffers that move from
    trip to trip.

    ```mlir
    glow_low.loop %i = 7 {
      %a = glow_low.window %x[%i by 32] : memref<7x32xf32> to memref<32xf32>
      %b = glow_low.window %y[%i by 32] : memref<7x32xf32> to memref<32xf32>
      glow_low.relu @out %b, @in %a
    }
    glow_low.loop %j = @in %n while @in %unfinished {
      glow_low.matmul @out %next, @in %state, @in %transition
      glow_low.copy @out %state, @in %next
      glow_low.less @out %unfinished, @in %error, @in %tolerance
    }
    ```
    """

    name = "glow_low.loop"
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"trip_count": Qualifier.IN, "condition": Qualifier.IN}

    trip_count = opt_operand_def(BUFFER)
    condition = opt_operand_def(BUFFER)
    trips: TripsAttr | None = opt_prop_def(base(IntegerAttr) | base(SizesAttr))
    body = region_def("single_block")

    @classmethod
    def of(
        cls,
        trips: Size | SSAValue | None,
        location: LocationAttr | None = None,
        condition: SSAValue | None = None,
    ) -> LoopOp:
        """A loop with an empty body, over a size of trips, those that a buffer says, or while a condition holds."""
        region = Region(Block(arg_types=[IndexType()]))
        declared = trips if isinstance(trips, SSAValue | None) else trips_attribute(trips)
        return cls.create(**_described(declared, condition), regions=[region], location=location)

    @property
    def block(self) -> Block:
        """The body."""
        return self.body.block

    @property
    def index(self) -> SSAValue:
        """The number of the trip."""
        return self.block.args[0]

    @property
    def max_trips(self) -> int | None:
        """The maximum number of trips, if known."""
        return None if self.size_of_trips is None else largest(self.size_of_trips)

    @property
    def runs(self) -> bool:
        """Whether there is at least one trip for all values of symbols."""
        return self.size_of_trips is not None and smallest(self.size_of_trips) > 0 and self.condition is None

    def verify_(self) -> None:
        verify_trips(self.trips, self.trip_count, self.condition)
        require([arg.type for arg in self.block.args] == [IndexType()], "the body takes the number of the trip")
        self.verify_regions("a loop")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.index)
        if self.trips is not None:
            printer.print_string(" = ")
            print_trips(printer, self.trips)
        if self.trip_count is not None:
            printer.print_string(" = ")
            print_read(printer, self.trip_count)
        if self.condition is not None:
            printer.print_string(" while ")
            print_read(printer, self.condition)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        index = parser.parse_argument(expect_type=False).resolve(IndexType())
        trips: Attribute | SSAValue | None = None
        if parser.parse_optional_punctuation("="):
            trips = parse_optional_read(parser)
            trips = parse_trips(parser) if trips is None else trips
        condition = parse_read(parser) if parser.parse_optional_keyword("while") else None
        region = parser.parse_region((index,))
        attributes = parser.parse_optional_attr_dict()
        return cls.create(**_described(trips, condition), attributes=attributes, regions=[region])


class _Ends(TypedDict):
    """The operands and properties that end a loop."""

    operands: list[SSAValue]
    properties: dict[str, Attribute]


def _described(trips: Attribute | SSAValue | None, condition: SSAValue | None) -> _Ends:
    """The operands and properties of a loop with that number of trips and that condition."""
    groups = [[trips] if isinstance(trips, SSAValue) else [], [] if condition is None else [condition]]
    properties = {"operandSegmentSizes": to_segments([len(group) for group in groups])}
    if isinstance(trips, Attribute):
        properties["trips"] = trips
    return {"operands": [value for group in groups for value in group], "properties": properties}


@op_definition
class WindowOp(AddressOp):
    """
    A view that moves: in each trip of an index's loop it begins that index's step in `steps`, in elements, further on.

    A negative step moves it backwards. The type is that of the first trip of all loops; its offset counts from the
    start of the allocation, like that of a view.

    ```mlir
    %1 = glow_low.window %0[%i by 32] : memref<7x32xf32> to memref<32xf32, strided<[1], offset: 4>>
    ```
    """

    name = "glow_low.window"
    MOVES: ClassVar[bool] = True

    source = operand_def(BUFFER)
    indices = var_operand_def(IndexType())
    steps = ints_prop()

    traits = traits_def(Pure(), KnownAttributes())

    @classmethod
    def of(
        cls,
        source: SSAValue,
        moves: Sequence[tuple[SSAValue, int]],
        type_: Buffer,
        location: LocationAttr | None = None,
    ) -> WindowOp:
        """View `source` as `type_`, moved with each index by its step."""
        properties = {"steps": to_attribute(tuple(step for _, step in moves))}
        operands = [source, *(index for index, _ in moves)]
        return cls.create(operands=operands, properties=properties, result_types=[type_], location=location)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        with printer.in_square_brackets():
            printer.print_list(
                zip(self.indices, ints(self.steps), strict=True), lambda move: _print_move(printer, move)
            )
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parse_defined_value(parser)
        moves = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_move(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        stated = parser.parse_type()
        if stated != source.type:
            parser.raise_error(f"what is viewed has type {source.type}, not {stated}", position, parser.pos)
        parser.parse_keyword("to")
        type_ = parser.parse_type()
        properties = {"steps": to_attribute(tuple(step for _, step in moves))}
        operands = [source, *(index for index, _ in moves)]
        return cls.create(operands=operands, result_types=[type_], properties=properties, attributes=attributes)

    def moves(self) -> list[tuple[int, int]]:
        """For each index, the number of trips of its loop, and the elements by which each trip moves the window."""
        trips = (loop_of(index).max_trips for index in self.indices)
        return [(1 if count is None else count, step) for count, step in zip(trips, ints(self.steps), strict=True)]

    def sized_moves(self) -> list[tuple[Size, int]]:
        """Trips and elements a trip, for each loop whose trips are a size that is known at run time only."""
        trips = [loop_of(index).size_of_trips for index in self.indices]
        moves = zip(trips, ints(self.steps), strict=True)
        return [(count, step) for count, step in moves if count is not None and not isinstance(count, int)]

    def verify_(self) -> None:
        require(len(ints(self.steps)) == len(self.indices), "a window needs one step for each index")
        around = [_is_index_of_loop_around(index, self) for index in self.indices]
        require(all(around), "a window moves with the number of the trip of a loop around it")
        bounded = all(loop_of(index).max_trips is not None for index in self.indices)
        require(bounded, "a window moves with a loop whose trips are a size")
        require(len(set(self.indices)) == len(self.indices), "a window moves once with each loop")
        require(offset_of(self.result) >= reach_below(self.result), "a window moves in front of its allocation")
        self.verify_address("a window", reach_of(self.result), self.sized_moves())


def _print_move(printer: Printer, move: tuple[SSAValue, int]) -> None:
    printer.print_ssa_value(move[0])
    printer.print_string(f" by {move[1]}")


def _parse_move(parser: Parser) -> tuple[SSAValue, int]:
    index = parse_defined_value(parser)
    parser.parse_keyword("by")
    return index, parser.parse_integer(allow_boolean=False)


def _is_index_of_loop_around(value: SSAValue, op: Operation) -> bool:
    loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
    return isinstance(loop, LoopOp) and loop.is_ancestor(op)


def loop_of(index: SSAValue) -> LoopOp:
    """The loop whose trips an index counts."""
    assert isinstance(index.owner, Block)
    loop = index.owner.parent_op()
    assert isinstance(loop, LoopOp)
    return loop


def moves_of(value: SSAValue) -> list[tuple[int, int]]:
    """The motion of a buffer: trips and elements per trip for each loop; empty if it does not move."""
    owner = value.owner
    return owner.moves() if type(owner) is WindowOp else []


def reach_of(value: SSAValue) -> int:
    """The maximum number of elements by which a trip finds a buffer after the offset of its type."""
    return sum((trips - 1) * step for trips, step in moves_of(value) if step > 0)


def reach_below(value: SSAValue) -> int:
    """The maximum number of elements by which a trip finds a buffer before the offset of its type."""
    return sum((trips - 1) * -step for trips, step in moves_of(value) if step < 0)


def is_same_buffer(one: SSAValue, other: SSAValue) -> bool:
    """Whether two buffers are the same elements in the same order, in every trip of all loops."""
    return root_of(one) is root_of(other) and are_alike(one, other)


def are_alike(one: SSAValue, other: SSAValue) -> bool:
    """Whether two buffers are the same, or would be if their allocations were."""
    return one.type == other.type and motion_of(one) == motion_of(other)


def part_of(value: SSAValue, type_: Buffer, location: LocationAttr | None = None) -> ViewOp | WindowOp:
    """A view of a buffer's memory with other sizes, strides and offset; a window with the same motion if it moves."""
    part = (
        WindowOp.of(root_of(value), list(motion_of(value).items()), type_, location)
        if isinstance(value.owner, WindowOp)
        else ViewOp.of(value, type_, location)
    )
    part.result.name_hint = value.name_hint
    return part


def motion_of(value: SSAValue) -> dict[SSAValue, int]:
    """Loop index → the elements by which each trip moves a buffer; empty if it does not move."""
    owner = value.owner
    if type(owner) is not WindowOp:
        return {}
    moves = zip(owner.indices, ints(owner.steps), strict=True)
    return {index: step for index, step in moves if step}

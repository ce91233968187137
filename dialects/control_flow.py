"""The base of the branches and loops of both dialects."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import element_of, has_one_element, require
from glow_mlir.dialects.sizes import SizesAttr, smallest
from glow_mlir.support.symbols import Size
from glow_mlir.xdsl_patches.operations import LeanOperation


class ControlFlowOp(LeanOperation, ABC):
    """
    An op whose regions hold operations of the program, which run at the op: not at all, once, or several times.

    Values of enclosing regions are visible inside. A body of scalar operations, such as a stack's, is no such region.
    """


class FunctionCall(LeanOperation, ABC):
    """A call, in one function of the module, of another function."""


def verify_scalar(value: SSAValue, element: Attribute, noun: str) -> None:
    """Check that a tensor or buffer has one element, of that type."""
    is_scalar = has_one_element(value) and element_of(value) == element
    require(is_scalar, f"{noun} is one element of {element}, not {value.type}")


TripsAttr = IntegerAttr | SizesAttr
"""The number of trips of a loop: an i64, or a single size that is known at run time only."""


class CountedOp(ControlFlowOp, ABC):
    """A loop; its property `trips` is the number of its trips unless that is computed."""

    @property
    def size_of_trips(self) -> Size | None:
        """The number of trips, an upper bound if there is a condition; `None` if it is computed."""
        trips = self.properties.get("trips")
        if isinstance(trips, SizesAttr):
            (size,) = trips.data
            return size
        return None if trips is None else integer(trips)

    @property
    def static_trips(self) -> int | None:
        """The number of trips if it is static, an upper bound if there is a condition; otherwise `None`."""
        return self.size_of_trips if isinstance(self.size_of_trips, int) else None


def trips_attribute(trips: Size) -> Attribute:
    """The property `trips` for that number of trips."""
    return to_attribute(trips) if isinstance(trips, int) else SizesAttr((trips,))


def verify_trips(trips: TripsAttr | None, trip_count: SSAValue | None, condition: SSAValue | None) -> None:
    """Check that a loop ends by a number of trips (a property or an operand), by a condition, or by both."""
    require(trips is None or trip_count is None, "trips are counted once")
    if isinstance(trips, SizesAttr):
        is_size = len(trips.data) == 1 and not isinstance(trips.data[0], int) and smallest(trips.data[0]) >= 0
        require(is_size, "trips are one size, which is never below 0")
    elif trips is not None:
        require(trips.type == i64, "trips are counted by an i64")
        require(integer(trips) > 0, "a loop has at least one trip")
    if trip_count is not None:
        verify_scalar(trip_count, i64, "the number of trips")
    if condition is not None:
        verify_scalar(condition, i1, "the condition")
    endless = trips is None and trip_count is None and condition is None
    require(not endless, "a loop ends after some trips, or by a condition")


def print_trips(printer: Printer, trips: TripsAttr) -> None:
    """Print the number of trips of a loop: an integer or a size."""
    if isinstance(trips, SizesAttr):
        printer.print_attribute(trips)
    else:
        printer.print_string(str(integer(trips)))


def parse_trips(parser: Parser) -> Attribute:
    """Parse what `print_trips` prints."""
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    return parser.parse_attribute() if number is None else to_attribute(number)

"""What branches and loops of both dialects have in common."""

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
    An op whose regions hold operations of the program: they run where the op stands, not at all, once or several times.

    Values of the regions around are visible inside. A body of scalar operations, as a stack has one, is no such region.
    """


class FunctionCall(LeanOperation, ABC):
    """A call of a function of the module, which stands in another function itself."""


def verify_scalar(value: SSAValue, element: Attribute, noun: str) -> None:
    """Check that a tensor or buffer has one element, of that type."""
    is_scalar = has_one_element(value) and element_of(value) == element
    require(is_scalar, f"{noun} is one element of {element}, not {value.type}")


TripsAttr = IntegerAttr | SizesAttr
"""How many trips a loop has: an i64, or one size that is known at run time only."""


class CountedOp(ControlFlowOp, ABC):
    """A loop, whose property `trips` says how often it runs, unless that is computed."""

    @property
    def size_of_trips(self) -> Size | None:
        """How many trips there are, at most where there is a condition; `None` where they are computed."""
        trips = self.properties.get("trips")
        if isinstance(trips, SizesAttr):
            (size,) = trips.data
            return size
        return None if trips is None else integer(trips)

    @property
    def static_trips(self) -> int | None:
        """How many trips there are at most, where that is a number; exactly so many without a condition."""
        return self.size_of_trips if isinstance(self.size_of_trips, int) else None


def trips_attribute(trips: Size) -> Attribute:
    """The property of a loop with so many trips."""
    return to_attribute(trips) if isinstance(trips, int) else SizesAttr((trips,))


def verify_trips(trips: TripsAttr | None, trip_count: SSAValue | None, condition: SSAValue | None) -> None:
    """Check what ends a loop: a number of trips, one that is computed, a condition, or the one and the other."""
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
    """Print how many trips a loop has: a number alone, or a size."""
    if isinstance(trips, SizesAttr):
        printer.print_attribute(trips)
    else:
        printer.print_string(str(integer(trips)))


def parse_trips(parser: Parser) -> Attribute:
    """Parse what `print_trips` prints."""
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    return parser.parse_attribute() if number is None else to_attribute(number)

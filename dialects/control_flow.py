"""What branches and loops of both dialects have in common."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation

from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import element_of, has_one_element, require


class ControlFlowOp(IRDLOperation, ABC):
    """
    An op whose regions hold operations of the program: they run where the op stands, not at all, once or several times.

    Values of the regions around are visible inside. A body of scalar operations, as a stack has one, is no such region.
    """


def verify_scalar(value: SSAValue, element: Attribute, noun: str) -> None:
    """Check that a tensor or buffer has one element, of that type."""
    is_scalar = has_one_element(value) and element_of(value) == element
    require(is_scalar, f"{noun} is one element of {element}, not {value.type}")


def verify_trips(trips: IntegerAttr | None, trip_count: SSAValue | None, condition: SSAValue | None) -> None:
    """Check what ends a loop: a number of trips, one that is computed, a condition, or the one and the other."""
    require(trips is None or trip_count is None, "trips are counted once")
    if trips is not None:
        require(trips.type == i64, "trips are counted by an i64")
        require(integer(trips) > 0, "a loop has at least one trip")
    if trip_count is not None:
        verify_scalar(trip_count, i64, "the number of trips")
    if condition is not None:
        verify_scalar(condition, i1, "the condition")
    endless = trips is None and trip_count is None and condition is None
    require(not endless, "a loop ends after some trips, or by a condition")

"""
Code that looks at numbers that lead somewhere: at each before it is used, or at all at first (`HighOp.index_ranges`).

No index reaches beyond an operand: with one out of range the instruction fails.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from glow_mlir.codegen.access import read_index
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, linear, nest
from glow_mlir.codegen.builder.types import i32, integer_of_width
from glow_mlir.codegen.builder.value import Number, Value
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.index_ranges import IndexRange


def from_front(b: Builder, index: Value, size: Index) -> Value:
    """An index counted from the front; it may be out of range."""
    return b.select(index < 0, index + as_i64(b, size), index)


def as_i64(b: Builder, size: Index) -> Number:
    """A size beside indices, which are as wide whatever pointers are."""
    return size if isinstance(size, int) else b.cast(size, integer_of_width(64))


def checked(call: KernelCall, index: Value, size: Index, wraps: bool = True) -> Value:
    """
    An index counted from the front; with one out of range the instruction fails, and 0 takes its place.

    Negative ones count from the back if `wraps`.
    """
    b, place = call.b, from_front(call.b, index, size) if wraps else index
    fits = b.compare("ult", place, as_i64(b, size))
    with b.when(~fits):
        call.fail()
    return b.index(b.select(fits, place, 0))


@contextmanager
def in_range(call: KernelCall[HighOp]) -> Generator[None]:
    """
    Run the block where all numbers that lead somewhere are in range; else the instruction fails.

    There is no code for it where they are constants that are known to be.
    """
    if call.failed is None:
        yield
        return
    b = call.b
    wrong = b.stack(i32, 1)
    wrong.store(b.constant(0, i32))
    for allowed in call.op.index_ranges():
        _look(call, allowed, wrong)
    fits = wrong.load(i32).eq(0)
    with b.when(~fits):
        call.fail()
    with b.when(fits):
        yield


def _look(call: KernelCall[HighOp], allowed: IndexRange, wrong: Value) -> None:
    """Note whether a number of an operand is out of range."""
    b, operand = call.b, call.one(allowed.operand)
    (bound,) = call.extents((allowed.bound,))
    first, last = allowed.columns or (0, operand.shape[-1])
    if allowed.covers:
        _look_at_ends(call, allowed, wrong)
        return

    def look(place: list[Index]) -> None:
        place = [*place[:-1], place[-1] + first]
        number = b.index(read_index(b, operand, linear(place, operand.strides)))
        is_right = (number >= allowed.least) & (number < bound)
        if allowed.ascends is not None:
            is_right = is_right & ((number < 0) | (number > place[allowed.ascends]))
        with b.when(~is_right):
            wrong.store(b.constant(1, i32))

    nest(b, (*operand.extents[:-1], last - first), look)


def _look_at_ends(call: KernelCall[HighOp], allowed: IndexRange, wrong: Value) -> None:
    """Note whether the ends of ranges do not follow one another up to the largest number that is allowed."""
    b, operand = call.b, call.one(allowed.operand)
    (bound,) = call.extents((allowed.bound,))
    column = 0 if allowed.columns is None else allowed.columns[0]
    with b.loop(0, operand.extents[0], carried=[b.index(0)]) as loop:
        end = b.index(read_index(b, operand, linear([loop.index, column], operand.strides)))
        with b.when((end < loop.values[0]) | (end >= bound)):
            wrong.store(b.constant(1, i32))
        loop.set(end)
    with b.when(loop.results[0].ne(bound - 1)):
        wrong.store(b.constant(1, i32))

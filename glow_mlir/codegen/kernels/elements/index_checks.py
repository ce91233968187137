"""
Bounds checks of indices: of each before it is used, or of all in advance (`HighOp.index_ranges`).

No index reaches beyond an operand: if one is out of range, the instruction fails.
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
    """Return an index counted from the front; it may be out of range."""
    return b.select(index < 0, index + as_i64(b, size), index)


def as_i64(b: Builder, size: Index) -> Number:
    """Convert a size to i64, the type of indices, whatever the width of pointers."""
    return size if isinstance(size, int) else b.cast(size, integer_of_width(64))


def checked(call: KernelCall, index: Value, size: Index, wraps: bool = True) -> Value:
    """
    Return an index counted from the front; if it is out of range, the instruction fails and the index is 0.

    Negative indices count from the back if `wraps`.
    """
    b, position = call.b, from_front(call.b, index, size) if wraps else index
    fits = b.compare("ult", position, as_i64(b, size))
    with b.when(~fits):
        call.fail()
    return b.index(b.select(fits, position, 0))


@contextmanager
def in_range(call: KernelCall[HighOp]) -> Generator[None]:
    """
    Run the block if all indices are in range; otherwise the instruction fails.

    No check is emitted for constants that are known to be in range.
    """
    if call.failed is None:
        yield
        return
    b = call.b
    wrong = b.stack(i32, 1)
    wrong.store(b.constant(0, i32))
    for allowed in call.op.index_ranges():
        _check(call, allowed, wrong)
    fits = wrong.load(i32).eq(0)
    with b.when(~fits):
        call.fail()
    with b.when(fits):
        yield


def _check(call: KernelCall[HighOp], allowed: IndexRange, wrong: Value) -> None:
    """Set `wrong` if a number of an operand is out of range."""
    b, operand = call.b, call.one(allowed.operand)
    (bound,) = call.extents((allowed.bound,))
    first, last = allowed.columns or (0, operand.shape[-1])
    if allowed.covers:
        _check_ends(call, allowed, wrong)
        return

    def check(indices: list[Index]) -> None:
        indices = [*indices[:-1], indices[-1] + first]
        number = b.index(read_index(b, operand, linear(indices, operand.strides)))
        is_right = (number >= allowed.least) & (number < bound)
        if allowed.ascends is not None:
            is_right = is_right & ((number < 0) | (number > indices[allowed.ascends]))
        with b.when(~is_right):
            wrong.store(b.constant(1, i32))

    nest(b, (*operand.extents[:-1], last - first), check)


def _check_ends(call: KernelCall[HighOp], allowed: IndexRange, wrong: Value) -> None:
    """Set `wrong` unless the ends of ranges ascend and the last is the largest allowed number."""
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

"""The kernel that appends keys and values to a table of earlier ones."""

from __future__ import annotations

from glow_mlir.codegen.access import read_index
from glow_mlir.codegen.builder.nests import Index, linear
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box, copy_box, fill_box, raw_constant
from glow_mlir.codegen.kernels.elements.index_checks import as_i64
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.cache import ExtendCacheOp


@kernel("extend-cache")
class ExtendCacheKernel(Kernel[ExtendCacheOp]):
    """
    A copy of the earlier rows of each sequence, unless the result is in their place, then its new rows, then zeros.

    Threads share nothing: most calls write a few rows, and waking a thread takes longer.
    """

    name = "extend-cache"
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[ExtendCacheOp]) -> None:
        with call.b.loop(0, call.result.extents[0]) as sequence:
            rows = _Rows(call, sequence)
            if call.one("past").strides == call.result.strides:
                self._write_in_place(call, rows)
            else:
                rows.copy_earlier()
                rows.write_others()

    def _write_in_place(self, call: KernelCall[ExtendCacheOp], rows: _Rows) -> None:
        """Write rows where the result may lie in the place of the earlier ones, which the call decides."""
        b, stay = call.b, rows.earlier_stay()
        is_shared = b.address(call.one("past").pointer).eq(b.address(call.result.pointer))
        with b.when(~is_shared):
            rows.copy_earlier()
        with b.when(~is_shared | stay):
            rows.write_others()
        with b.when(is_shared & ~stay):
            call.fail()


class _Rows:
    """The rows of one sequence of the result: `kept` earlier ones, and new ones from `begin` up to `end`."""

    def __init__(self, call: KernelCall[ExtendCacheOp], sequence: Index) -> None:
        b, result = call.b, call.result
        self._call, self._sequence = call, sequence
        starts, ends = call.one("starts"), call.one("ends")
        self._start = read_index(b, starts, linear([sequence], starts.strides))
        end = read_index(b, ends, linear([sequence], ends.strides))
        count, new = (as_i64(b, operand.extents[2]) for operand in (result, call.one("rows")))
        self._earlier, self._count = as_i64(b, call.one("past").extents[2]), count
        self._begin = b.min(b.max(self._start, 0), count)
        self._end = b.max(b.min(b.min(end, self._start + new), count), self._begin)
        self._kept = b.min(self._begin, self._earlier)

    def earlier_stay(self) -> Value:
        """Whether the result begins with all earlier rows."""
        b = self._call.b
        return (self._start >= self._earlier) & (b.as_value(self._count, self._start.type) >= self._earlier)

    def copy_earlier(self) -> None:
        """Copy the earlier rows before the new ones."""
        past = self._call.one("past")
        copy_box(self._call.b, self._extents(self._kept), self._box(self._call.result, 0), self._box(past, 0))

    def write_others(self) -> None:
        """Copy the new rows, and write zeros before and behind them."""
        b, result, rows = self._call.b, self._call.result, self._call.one("rows")
        zero = raw_constant(b, 0, result.element)
        for first, last in ((self._kept, self._begin), (self._end, self._count)):
            fill_box(b, self._extents(last - first), self._box(result, first), zero)
        source = self._box(rows, self._begin - self._start)
        copy_box(b, self._extents(self._end - self._begin), self._box(result, self._begin), source)

    def _extents(self, count: Value) -> tuple[Index, ...]:
        _, heads, _, depth = self._call.result.extents
        return heads, self._call.b.index(count), depth

    def _box(self, operand: Operand, row: Value | int) -> Box:
        """The rows of the sequence from `row` on."""
        batch, *inner = operand.strides
        first = self._call.b.index(row)
        return Box(operand, tuple(inner)).moved([self._sequence, first], (batch, operand.strides[2]))

"""
Kernels with results whose sizes depend on the values of their operands.

Results are filled with zeros first; elements are counted in the result `count`.
"""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.access import load, read_index, store
from glow_mlir.codegen.builder.nests import Index, linear, nest
from glow_mlir.codegen.builder.types import i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box, copy_box, fill_box, raw_constant
from glow_mlir.codegen.kernels.elements.sort_keys import MAX_POSITIONS, Sort, sorts_keys
from glow_mlir.codegen.kernels.elements.top_k import goes_before
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.selection import NonZeroOp, UniqueOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import element_of, largest_shape
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


def clear(call: KernelCall, *names: str) -> None:
    """Fill results with zeros."""
    for operand in map(call.one, names):
        zero = raw_constant(call.b, 0, operand.element)
        fill_box(call.b, operand.extents, Box.all_of(operand), zero)


def counted(call: KernelCall) -> Value:
    """Return the count so far, and increment it."""
    address = call.one("count").pointer
    number = address.load(i64)
    address.store(number + 1)
    return call.b.index(number)


@kernel("non-zero")
class NonZeroKernel(Kernel[NonZeroOp]):
    """A check of one element after the other."""

    name = "non-zero"
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[NonZeroOp]) -> None:
        b, source, result = call.b, call.one("input"), call.result
        clear(call, "result", "count")

        def element(indices: list[Index]) -> None:
            x = load(b, source, linear(indices, source.strides), 1, 1)
            with b.when(x.ne(0.0 if x.info.is_float else 0)):
                column = counted(call)
                for axis, index in enumerate(indices):
                    store(b, result, linear([axis, column], result.strides), b.cast(b.index(index), i64))

        nest(b, source.extents, element)


@kernel("unique")
class UniqueKernel(Kernel[UniqueOp]):
    """
    A sort of row numbers, so that equal rows become adjacent in their original order.

    Rows of one element are sorted by keys, others by merging. The first of equal rows is their leader. Leaders are
    numbered in the order that is asked for.
    """

    name = "unique"
    RUN_TIME_SIZES = True

    def scratch(self, op: UniqueOp, target: Target) -> Sequence[Buffer]:
        count = max(1, largest_shape(op.inputs()[0])[0])
        list_ = ((count,), i64)
        sort = _sort(op, target)
        return [list_, list_, list_, *([list_] if sort is None else sort.scratch(count, target))]

    def emit(self, call: KernelCall[UniqueOp]) -> None:
        clear(call, "result", "indices", "occurrences", "inverse", "count")
        order, leaders, numbers = (operand.pointer for operand in call.many("scratch")[:3])
        rows, sort = _Rows(call, call.one("input")), _sort(call.op, call.target)
        if sort is None:
            rows.sort(order, call.many("scratch")[3].pointer)
            rows.lead(order, leaders)
        else:
            rows.lead_by_keys(sort, order, leaders)
        rows.number(order if flag(call.op.sorted) else None, leaders, numbers)


def _sort(op: UniqueOp, target: Target) -> Sort | None:
    """The sort of rows of one element; `None` where there are more, or no keys."""
    rows, columns = largest_shape(op.inputs()[0])
    fits = columns == 1 and rows < MAX_POSITIONS and sorts_keys(target)
    return Sort(element_of(op.inputs()[0]), False) if fits else None


@dataclass(frozen=True)
class _Rows:
    """The rows of the operand; lists of their numbers are arrays of i64 in memory."""

    call: KernelCall
    source: Operand

    @property
    def count(self) -> Index:
        """The number of rows."""
        return self.source.extents[0]

    def _at(self, list_: Value, position: Index) -> Value:
        return self.call.b.index(list_.at(position, i64).load(i64))

    def _put(self, list_: Value, position: Index, value: Index) -> None:
        list_.at(position, i64).store(self.call.b.cast(self.call.b.index(value), i64))

    def _compare(self, one: Value, other: Value) -> tuple[Value, Value]:
        """Whether a row comes before another, and whether they are equal."""
        b, source = self.call.b, self.source
        before = goes_before(source.element, False)

        def step(column: Value, _: Value, __: Value) -> Sequence[Value]:
            x, y = (load(b, source, linear([row, column], source.strides), 1, 1) for row in (one, other))
            less, more = before(b, x, y), before(b, y, x)
            return column + 1, less, ~(less | more)

        def goes_on(column: Value, _: Value, same: Value) -> Value:
            return same & (column < source.extents[1])

        no, yes = one < 0, one >= 0
        _, less, same = b.repeat([b.index(0), no, yes], step, goes_on)
        return less, same

    def sort(self, order: Value, other: Value) -> None:
        """Merge runs of 1, 2, 4, … rows; the result is in `order`."""
        b, count = self.call.b, self.count
        with b.loop(0, count) as i:
            self._put(order, i, i)

        def merge(width: Value) -> Sequence[Value]:
            with b.loop(0, count, width * 2) as start:
                middle, end = (b.min(start + reach, count) for reach in (width, width * 2))
                self._merge(order, other, start, middle, end)
            with b.loop(0, count) as i:
                self._put(order, i, self._at(other, i))
            return (width * 2,)

        def goes_on(width: Value) -> Value:
            return width < count

        b.repeat([b.index(1)], merge, goes_on)

    def _merge(self, order: Value, other: Value, start: Value, middle: Value, end: Value) -> None:
        b = self.call.b
        with b.loop(start, end, carried=[start, middle]) as loop:
            left, right = loop.values
            last = self.count - 1
            one, two = self._at(order, b.min(left, last)), self._at(order, b.min(right, last))
            less, _ = self._compare(two, one)
            takes_right = (right < end) & ((left >= middle) | less)
            self._put(other, loop.index, b.select(takes_right, two, one))
            loop.set(b.select(takes_right, left, left + 1), b.select(takes_right, right + 1, right))

    def lead(self, order: Value, leaders: Value) -> None:
        """Store for each row the first row that is equal."""
        b = self.call.b
        with b.loop(0, self.count, carried=[b.index(0)]) as loop:
            row = self._at(order, loop.index)
            _, same = self._compare(row, loop.values[0])
            leader = b.select(same & (loop.index > 0), loop.values[0], row)
            self._put(leaders, row, leader)
            loop.set(leader)

    def lead_by_keys(self, sort: Sort, order: Value, leaders: Value) -> None:
        """Sort rows of one element, and store for each the first row that is equal."""
        b, buffers = self.call.b, self.call.many("scratch")[3:]
        entries = buffers[0].pointer
        with b.loop(0, self.count) as row:
            key = sort.key(b, self.source, row * self.source.strides[0])
            sort.put(entries, row, sort.entry(b, key, row))
        sort.first(b, buffers, max(1, largest_shape(self.source.value)[0]), self.count, self.count)
        start = [b.index(0), sort.key_at(b, entries, 0)]
        with b.loop(0, self.count, carried=start) as loop:
            row, key = sort.position(b, entries, loop.index), sort.key_at(b, entries, loop.index)
            is_same = key.eq(loop.values[1]) & (loop.index > 0)
            leader = b.select(is_same, loop.values[0], row)
            self._put(order, loop.index, row)
            self._put(leaders, row, leader)
            loop.set(leader, key)

    def number(self, order: Value | None, leaders: Value, numbers: Value) -> None:
        """Go through the rows: leaders get numbers and are copied to the results."""
        b, call = self.call.b, self.call
        inverse, occurrences = call.one("inverse"), call.one("occurrences")
        with b.loop(0, self.count) as position:
            row = position if order is None else self._at(order, position)
            leader = self._at(leaders, row)
            with b.when(leader.eq(row)):
                self._keep(row, numbers)
            number = self._at(numbers, leader)
            store(b, inverse, row * inverse.strides[0], b.cast(number, i64))
            offset = number * occurrences.strides[0]
            store(b, occurrences, offset, read_index(b, occurrences, offset) + 1)

    def _keep(self, row: Value, numbers: Value) -> None:
        """Copy a row as the next result."""
        call, source, result, indices = self.call, self.source, self.call.result, self.call.one("indices")
        number = counted(call)
        self._put(numbers, row, number)
        store(call.b, indices, number * indices.strides[0], call.b.cast(row, i64))
        into = Box(result, result.strides[1:]).moved([number], result.strides[:1])
        copy_box(call.b, source.extents[1:], into, Box(source, source.strides[1:]).moved([row], source.strides[:1]))

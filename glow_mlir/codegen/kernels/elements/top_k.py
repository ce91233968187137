"""The kernel of the k largest or smallest elements: a heap of the best so far in the results themselves."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute

from glow_mlir.codegen.access import load, raw, store
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.nests import Index, linear, nest
from glow_mlir.codegen.builder.types import index_type, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import is_float, is_unsigned
from glow_mlir.dialects.glow_high.reductions import TopKOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import normalize_axis
from glow_mlir.support.dataclass import dataclass

Choose = Callable[[Builder, Value, Value], Value]
"""A comparison of two elements."""


def goes_before(element: Attribute, largest: bool) -> Choose:
    """Return a comparison whether x goes before y, regardless of positions; NaN is larger than any number."""
    if not is_float(element):
        predicate = f"{'u' if is_unsigned(element) else 's'}{'gt' if largest else 'lt'}"
        return lambda b, x, y: b.compare(predicate, x, y)
    if largest:
        return lambda b, x, y: b.compare("ugt", x, y) & b.compare("ord", y, y)
    return lambda b, x, y: b.compare("ult", x, y) & b.compare("ord", x, x)


@dataclass(frozen=True)
class Entry:
    """A value and its position in the input."""

    value: Value
    position: Value


@dataclass(frozen=True)
class Heap:
    """
    A heap whose root is the last entry in the order: slots along one axis of the two results.

    The order is total: among equal values, the one with the lower position goes first.
    """

    b: Builder
    values: Operand
    indices: Operand
    axis: int
    before: Choose

    def read(self, slot: Index) -> Entry:
        """Load the entry in a slot."""
        value = load(self.b, self.values, self._offset(self.values, slot), 1, 1)
        return Entry(value, load(self.b, self.indices, self._offset(self.indices, slot), 1, 1))

    def write(self, slot: Index, entry: Entry) -> None:
        """Store an entry in a slot."""
        store(self.b, self.values, self._offset(self.values, slot), entry.value)
        store(self.b, self.indices, self._offset(self.indices, slot), entry.position)

    def _offset(self, operand: Operand, slot: Index) -> Index:
        return slot * operand.strides[self.axis]

    def after(self, x: Entry, y: Entry) -> Value:
        """Whether x goes after y."""
        return self.before(self.b, y.value, x.value) | (
            ~self.before(self.b, x.value, y.value) & (x.position > y.position)
        )

    def sift(self, start: Index, count: Index) -> None:
        """Sift the entry in slot `start` down among the first `count` slots."""
        b = self.b
        entry = self.read(start)

        def sink(hole: Value, _: Value) -> list[Value]:
            left = hole * 2 + 1
            right = b.select(left + 1 < count, left + 1, left)
            first, second = self.read(left), self.read(right)
            takes_right = self.after(second, first)
            child = Entry(
                b.select(takes_right, second.value, first.value), b.select(takes_right, second.position, first.position)
            )
            sinks = self.after(child, entry)
            with b.when(sinks):
                self.write(hole, child)
            return [b.select(sinks, b.select(takes_right, right, left), hole), sinks]

        def goes_on(hole: Value, sinks: Value) -> Value:
            return sinks & (hole * 2 + 1 < count)

        start_values = [b.index(start), b.index(0).eq(0)]
        hole, _ = b.repeat(start_values, sink, goes_on)
        self.write(hole, entry)


@kernel("top-k")
class TopKKernel(Kernel[TopKOp]):
    """
    One pass over each line that keeps the best `k` in a heap, then a heap sort: n·log(k) in the worst case.

    Most elements of a long line cost one comparison with the root.
    """

    name = "top-k"
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[TopKOp]) -> None:
        op = call.op
        if integer(op.k) == 0:
            return
        source, values, indices = call.one("input"), call.one("values"), call.one("indices")
        axis = normalize_axis(integer(op.axis), len(source.sizes))
        outer = [other for other in range(len(source.sizes)) if other != axis]

        def line(position: list[Index]) -> None:
            moved = [
                Operand(
                    operand.pointer.at(linear(position, [operand.strides[a] for a in outer]), raw(operand.element)),
                    operand.value,
                    symbols=call.symbols,
                )
                for operand in (source, values, indices)
            ]
            self._line(call, axis, *moved)

        nest(call.b, tuple(source.extents[a] for a in outer), line)

    def _line(self, call: KernelCall[TopKOp], axis: int, source: Operand, values: Operand, indices: Operand) -> None:
        b, k, step = call.b, integer(call.op.k), source.strides[axis]
        before = goes_before(source.element, flag(call.op.largest))
        heap = Heap(b, values, indices, axis, before)
        sift = self._shared_sift(call, axis, before)

        def sink(start: Index, count: Index) -> None:
            b.call(sift, [values.pointer, indices.pointer, b.index(start), b.index(count)])

        def element(i: Value) -> Entry:
            return Entry(load(b, source, i * step, 1, 1), i)

        with b.loop(0, k, 1) as i:
            heap.write(i, element(i))
        with b.loop(0, k // 2, 1) as i:
            sink(k // 2 - 1 - i, k)
        with b.loop(k, source.extents[axis], 1) as i:
            entry = element(i)
            # A later element that equals the root goes after it.
            with b.when(before(b, entry.value, heap.read(0).value)):
                heap.write(0, entry)
                sink(0, k)
        with b.loop(0, k - 1, 1) as i:
            end = k - 1 - i
            last, root = heap.read(end), heap.read(0)
            heap.write(end, root)
            heap.write(0, last)
            sink(0, end)

    def _shared_sift(self, call: KernelCall[TopKOp], axis: int, before: Choose) -> str:
        """Return the shared function that sifts an entry down."""
        values, indices = call.one("values"), call.one("indices")
        key = ("sift", values.element, values.strides[axis], indices.strides[axis], flag(call.op.largest))

        def build(name: str) -> None:
            parameters = [ptr, ptr, index_type, index_type]
            with define_function(call.module, name, parameters, internal=True, inline=False) as (b, arguments):
                at_values, at_indices, start, count = arguments
                operands = Operand(at_values, values.value), Operand(at_indices, indices.value)
                Heap(b, *operands, axis, before).sift(start, count)

        return call.module.shared(key, build)

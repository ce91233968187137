"""The kernel of the k largest or smallest elements, by sorts of keys, or by a heap in the results themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.access import load, load_raw, raw, store
from glow_mlir.codegen.builder.builder import Builder, Loop
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.nests import Index, linear, nest, smaller
from glow_mlir.codegen.builder.types import i64, index_type, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.elements.sort_keys import MAX_POSITIONS, Sort, sorts_keys
from glow_mlir.codegen.math.half import is_half
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import is_float, is_unsigned
from glow_mlir.dialects.glow_high.reductions import TopKOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, largest_shape, normalize_axis
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

Choose = Callable[[Builder, Value, Value], Value]
"""A comparison of two elements."""

_VECTORS = 4
"""So many vectors of keys are compared at once with the last of the best."""

_COLLECTED = 3
"""A line is sorted as a whole unless it is as many times as long as the entries that are collected."""


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


def heap_line(call: KernelCall[TopKOp], axis: int, source: Operand, values: Operand, indices: Operand) -> None:
    """Keep the best of a line in a heap, and sort that: most elements of a long line cost one comparison."""
    b, k, step = call.b, integer(call.op.k), source.strides[axis]
    before = goes_before(source.element, flag(call.op.largest))
    heap = Heap(b, values, indices, axis, before)
    sift = _shared_sift(call, axis, before)

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


def _shared_sift(call: KernelCall[TopKOp], axis: int, before: Choose) -> str:
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


@kernel("top-k")
class TopKKernel(Kernel[TopKOp]):
    """
    The first `k` of each line in order, by integer keys with positions.

    A line of which more than a small part is asked for is sorted as a whole. Of a longer one, vectors compare elements
    with the last of the best `k` so far; those that go before it are collected, and sorted when there are `k` of them.

    Where there is no memory for that, a heap in the results keeps the best: n·log(k) in the worst case.
    """

    name = "top-k"
    RUN_TIME_SIZES = True

    def scratch(self, op: TopKOp, target: Target) -> Sequence[Buffer]:
        line = _Line.of(op, target)
        return line.sort.scratch(line.capacity, target) if line else ()

    def emit(self, call: KernelCall[TopKOp]) -> None:
        op = call.op
        if integer(op.k) == 0:
            return
        source, values, indices = call.one("input"), call.one("values"), call.one("indices")
        axis = normalize_axis(integer(op.axis), len(source.sizes))
        outer = [other for other in range(len(source.sizes)) if other != axis]
        sorted_line = _Line.of(op, call.target)

        def line(position: list[Index]) -> None:
            moved = [
                Operand(
                    operand.pointer.at(linear(position, [operand.strides[a] for a in outer]), raw(operand.element)),
                    operand.value,
                    symbols=call.symbols,
                )
                for operand in (source, values, indices)
            ]
            if sorted_line is None:
                heap_line(call, axis, *moved)
            else:
                sorted_line.emit(call, axis, *moved)

        nest(call.b, tuple(source.extents[a] for a in outer), line)


@dataclass(frozen=True)
class _Line:
    """How the first `k` elements of a line are found; `capacity` is the number of entries of a buffer."""

    sort: Sort
    k: int
    capacity: int
    is_sorted: bool
    """Whether all elements are sorted, instead of those that are collected."""

    @classmethod
    def of(cls, op: TopKOp, target: Target) -> _Line | None:
        """The way for an instruction; `None` for a heap."""
        shape, k = largest_shape(op.inputs()[0]), integer(op.k)
        length = shape[normalize_axis(integer(op.axis), len(shape))]
        if not sorts_keys(target) or length >= MAX_POSITIONS:
            return None
        element = element_of(op.inputs()[0])
        sort = Sort(element, flag(op.largest))
        collected = 2 * k + _lanes(target, element)
        if sort.is_by_ranks(length) or collected * _COLLECTED > length:
            return cls(sort, k, length, True)
        return cls(sort, k, collected, False)

    def emit(self, call: KernelCall[TopKOp], axis: int, source: Operand, values: Operand, indices: Operand) -> None:
        """Find the elements of one line, and write them."""
        b, step, buffers = call.b, source.strides[axis], call.many("scratch")
        length = source.extents[axis]
        entries = buffers[0].pointer

        def put(slot: Index, position: Value) -> Value:
            key = self.sort.key(b, source, position * step)
            self.sort.put(entries, slot, self.sort.entry(b, key, position))
            return key

        count = length if self.is_sorted else smaller(b, length, 2 * self.k)
        with b.loop(0, count) as i:
            put(i, i)
        if not self.is_sorted:
            count = self._collect(call, source, step, length, put)
        self.sort.first(b, buffers, self.capacity, count, self.k)
        with b.loop(0, self.k) as i:
            position = self.sort.position(b, entries, i)
            value = load_raw(b, source, position * step, 1, 1)
            values.pointer.at(i * values.strides[axis], raw(values.element)).store(value)
            store(b, indices, i * indices.strides[axis], b.cast(position, i64))

    def _collect(
        self, call: KernelCall[TopKOp], source: Operand, step: int, length: Index, put: Callable[[Index, Value], Value]
    ) -> Value:
        """Go through the elements behind the first ones; returns the number of entries that are left to sort."""
        b, start = call.b, smaller(call.b, length, 2 * self.k)
        lanes = _lanes(call.target, source.element) if step == 1 else 1
        whole = (length - start) // (_VECTORS * lanes) * (_VECTORS * lanes) + start
        state = self._best(call, source, step, b.index(start))
        if lanes > 1:
            with b.loop(start, whole, _VECTORS * lanes, carried=state) as block:

                def vectors(block: Loop = block) -> list[Value]:
                    with b.loop(0, _VECTORS * lanes, lanes, carried=block.values) as part:
                        first = block.index + part.index
                        found = b.mask_bits(self._before(b, source, first, lanes, part.values[1]))

                        def one(bits: Value, count: Value, first: Value = first) -> list[Value]:
                            put(count, first + b.index(b.lowest_bit(bits)))
                            return [bits & (bits - 1), count + 1]

                        _, count = b.repeat([found, part.values[0]], one, _is_any_left)
                        part.set(*self._bounded(call, source, step, count, part.values[1]))
                    return part.results

                is_any = b.any(self._before(b, source, block.index, _VECTORS * lanes, block.values[1]))
                block.set(*b.either(is_any, vectors, lambda block=block: block.values))
            state = block.results
            start = whole
        with b.loop(start, length, carried=state) as loop:
            count, bound = loop.values
            put(count, loop.index)
            count = count + b.index(b.cast(self._before(b, source, loop.index * step, 1, bound), i64))
            loop.set(*self._bounded(call, source, step, count, bound))
        return loop.results[0]

    def _before(self, b: Builder, source: Operand, offset: Index, lanes: int, bound: Value) -> Value:
        """Whether elements that lie side by side go before the last of the best, which is `bound`."""
        bounds = b.splat(bound, lanes) if lanes > 1 else bound
        if is_half(source.element):
            return b.compare("ult", self.sort.key(b, source, offset, lanes), bounds)
        return goes_before(source.element, self.sort.descending)(b, load(b, source, offset, 1, lanes), bounds)

    def _bounded(self, call: KernelCall[TopKOp], source: Operand, step: int, count: Value, bound: Value) -> list[Value]:
        """The number of entries and the last of the best, with the best alone kept where there are many entries."""
        return call.b.either(count > 2 * self.k, lambda: self._best(call, source, step, count), lambda: [count, bound])

    def _best(self, call: KernelCall[TopKOp], source: Operand, step: int, count: Value) -> list[Value]:
        """
        Keep the best of so many entries; returns how many they are, and the last one.

        That is its element, or its key if keys are compared faster: those of halves.
        """
        b, buffers = call.b, call.many("scratch")
        self.sort.first(b, buffers, self.capacity, count, self.k)
        entries = buffers[0].pointer
        if is_half(source.element):
            return [b.index(self.k), self.sort.key_at(b, entries, self.k - 1)]
        return [b.index(self.k), load(b, source, self.sort.position(b, entries, self.k - 1) * step, 1, 1)]


def _is_any_left(bits: Value, _: Value) -> Value:
    """Whether bits are set."""
    return bits.ne(0)


def _lanes(target: Target, element: Attribute) -> int:
    """The elements of a vector of keys."""
    return target.vector_width(raw(element))

"""The kernel of sums of table rows selected by segments of indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from glow_mlir.codegen.access import computed, lanes_for, load, read_index, store
from glow_mlir.codegen.builder.nests import Index, vector_loop
from glow_mlir.codegen.builder.types import i8, i32, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.elements.index_checks import checked
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.embedding import SparseLengthsSumOp
from glow_mlir.dialects.properties import flag, text
from glow_mlir.dialects.shapes import shape_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

_PART_BYTES = 4
"""The size of the scale, and of the offset, in a fused row in bytes."""


@kernel("sparse-lengths-sum")
class SparseLengthsSumKernel(Kernel[SparseLengthsSumOp]):
    """
    A loop over segments: columns of the sum stay in registers while the rows of a segment are added.

    A task begins by adding up the lengths of the segments before it.
    """

    name = "sparse-lengths-sum"
    AXES = ("segments",)
    RUN_TIME_SIZES = True

    def accepts(self, op: SparseLengthsSumOp) -> bool:
        return isinstance(sizes_of(op.result)[1], int)

    def cuts(self, op: SparseLengthsSumOp, target: Target) -> Mapping[str, int]:
        return {"segments": shape_of(op.outputs()[0])[0]}

    def emit(self, call: KernelCall[SparseLengthsSumOp]) -> None:
        b, segments = call.b, _Segments(call)
        begin, end = call.share("segments").of(call.result.extents[0])
        with b.loop(begin, end, carried=[segments.first(begin)]) as loop:
            start, stop = segments.bounds_of(loop.index, loop.values[0])
            segments.add(loop.index, start, stop)
            loop.set(stop)


@dataclass(frozen=True)
class _Segments:
    """Emits the code of one instruction."""

    call: KernelCall[SparseLengthsSumOp]

    def _bound(self, number: Index) -> Value:
        segments = self.call.one("segments")
        return self.call.b.index(read_index(self.call.b, segments, self.call.b.index(number) * segments.strides[0]))

    def first(self, begin: Index) -> Value:
        """Return the start of segment `begin` if segments are given by lengths, else 0."""
        b = self.call.b
        if text(self.call.op.bounds) != "lengths":
            return b.index(0)
        with b.loop(0, begin, carried=[b.index(0)]) as loop:
            loop.set(loop.values[0] + self._bound(loop.index))
        return loop.results[0]

    def bounds_of(self, number: Value, reached: Value) -> tuple[Value, Value]:
        """Return start and stop of a segment; if one is out of range, the instruction fails, and both are 0."""
        call, b, count = self.call, self.call.b, self.call.one("indices").extents[0]
        if text(self.call.op.bounds) == "lengths":
            start, stop = reached, reached + self._bound(number)
        else:
            last = call.one("segments").extents[0] - 1
            start = self._bound(number)
            is_last = number.eq(last)
            stop = b.select(is_last, count, self._bound(b.min(number + 1, last)))
        fits = (start >= 0) & (stop >= start) & (stop <= count)
        with b.when(~fits):
            call.fail()
        return b.select(fits, start, 0), b.select(fits, stop, 0)

    def add(self, segment: Value, start: Value, stop: Value) -> None:
        """Compute the sum of the rows of one segment."""
        call, b, data, result = self.call, self.call.b, self.call.one("data"), self.call.result
        type_ = computed(result.element)
        moves = data.strides[1], result.strides[1]
        width = lanes_for(call.target, type_, moves, kernel_costs(call.target).independent_vectors)

        def columns(column: Index, lanes: int) -> None:
            zeros = b.constant(0.0, vector(type_, lanes))
            with b.loop(start, stop, carried=[zeros]) as loop:
                row = self._row(loop.index)
                loop.set(self._plus(loop.values[0], row, column, loop.index, type_))
            store(b, result, segment * result.strides[0] + column * moves[1], loop.results[0])

        vector_loop(b, result.extents[1], width, columns)

    def _row(self, position: Value) -> Value:
        """Return the row that the index at a position selects."""
        call, b, indices = self.call, self.call.b, self.call.one("indices")
        return checked(call, read_index(b, indices, position * indices.strides[0]), call.one("data").extents[0], False)

    def _plus(self, total: Value, row: Value, column: Index, position: Value, type_: Attribute) -> Value:
        """Return the sum with columns of one more row added."""
        call, b, data = self.call, self.call.b, self.call.one("data")
        offset = row * data.strides[0] + column * data.strides[1]
        weights = call.maybe("weights")
        weight = None if weights is None else self._number(weights, position, type_)
        parts = self._scale_and_offset(row, type_)
        if parts is None:
            x = load(b, data, offset, data.strides[1], total.lanes)
            return total + x if weight is None else b.fma(x, weight, total)
        scale, shift = parts if weight is None else (part * weight for part in parts)
        quantized = data.pointer.at(offset, i8).load(vector(i8, total.lanes))
        return b.fma(b.cast(b.cast(quantized, i32, signed=False), type_), scale, total + shift)

    def _scale_and_offset(self, row: Value, type_: Attribute) -> Sequence[Value] | None:
        """Load scale and offset that dequantize a row; `None` if rows are not quantized."""
        data, scales, offsets = self.call.one("data"), self.call.maybe("scales"), self.call.maybe("offsets")
        if scales is not None and offsets is not None:
            return [self._number(operand, row, type_) for operand in (scales, offsets)]
        if not flag(self.call.op.fused):
            return None
        start = data.pointer.at(row * data.strides[0] + static(self.call.result.sizes[1:])[0] * data.strides[1], i8)
        return [start.at(part * _PART_BYTES, i8).load(f32, align=1) for part in range(2)]

    def _number(self, operand: Operand, position: Value, type_: Attribute) -> Value:
        return self.call.b.cast(load(self.call.b, operand, position * operand.strides[0], 1, 1), type_)

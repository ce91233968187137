"""The kernel of determinants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.nests import Index, linear, nest, vector_loop
from glow_mlir.codegen.builder.types import f64, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, kind_of
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.linear import DetOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.dialects.target import Target


@kernel("determinant")
class DeterminantKernel(Kernel):
    """
    Gaussian elimination with row pivots on a copy of each matrix in f64, since f32 loses digits to cancellation.

    A column without a pivot makes the determinant 0, and the elimination goes on as if the pivot were 1.
    """

    name = "determinant"

    def accepts(self, op: Operation) -> bool:
        return kind_of(op) is DetOp

    def scratch(self, op: Instruction, target: Target) -> Sequence[Buffer]:
        rows = max(1, shape_of(getattr(op, "input"))[-1])
        return [((rows, rows), f64)]

    def emit(self, call: KernelCall) -> None:
        b, source, result = call.b, call.one("input"), call.result
        matrix = _Matrix(call, call.one("scratch").pointer, source.shape[-1])

        def one(indices: list[Index]) -> None:
            matrix.copy(linear(indices, source.strides[:-2]))
            determinant = b.cast(matrix.eliminate(), computed(result.element))
            store(b, result, linear(indices, result.strides), determinant)

        nest(b, source.shape[:-2], one)


@dataclass(frozen=True)
class _Matrix:
    """A square matrix of f64 in scratch memory."""

    call: KernelCall
    pointer: Value
    size: int

    def _at(self, row: Index, column: Index) -> Value:
        return self.pointer.at(row * self.size + column, f64)

    def copy(self, start: Index) -> None:
        """Fill the matrix from the one of the operand that starts at an element offset."""
        b, source = self.call.b, self.call.one("input")
        row_step, column_step = source.strides[-2:]
        lanes = lanes_for(self.call.target, f64, [column_step])
        with b.loop(0, self.size) as row:

            def move(column: Index, width: int) -> None:
                offset = start + (row * row_step + column * column_step)
                self._at(row, column).store(b.cast(load(b, source, offset, column_step, width), f64))

            vector_loop(b, self.size, lanes, move)

    def eliminate(self) -> Value:
        """The product of the pivots, negated with each exchange of rows."""
        b = self.call.b
        with b.loop(0, self.size, carried=[b.constant(1.0, f64)]) as columns:
            k = columns.index
            row = self._pivot_row(k)
            self._exchange(k, row)
            pivot = self._at(k, k).load(f64)
            divisor = b.select(pivot.eq(0.0), 1.0, pivot)
            with b.loop(k + 1, self.size) as below:
                self._subtract(below, k, self._at(below, k).load(f64) / divisor)
            product = columns.values[0] * pivot
            columns.set(b.select(row.eq(k), product, -product))
        return columns.results[0]

    def _pivot_row(self, k: Value) -> Value:
        """The row from `k` on with the largest element in column `k`."""
        b = self.call.b
        with b.loop(k, self.size, carried=[b.constant(-1.0, f64), k]) as rows:
            largest, position = rows.values
            size = b.fabs(self._at(rows.index, k).load(f64))
            rows.set(b.select(size > largest, size, largest), b.select(size > largest, rows.index, position))
        return rows.results[1]

    def _exchange(self, first: Value, second: Value) -> None:
        def swap(column: Index, width: int) -> None:
            one, other = self._at(first, column), self._at(second, column)
            values = [place.load(vector(f64, width)) for place in (one, other)]
            one.store(values[1])
            other.store(values[0])

        self._each_vector(swap)

    def _subtract(self, row: Value, other: Value, factor: Value) -> None:
        """Subtract a multiple of another row; what is left of the pivot's column is not read again."""

        def step(column: Index, width: int) -> None:
            type_ = vector(f64, width)
            place = self._at(row, column)
            place.store(place.load(type_) - self._at(other, column).load(type_) * factor)

        self._each_vector(step)

    def _each_vector(self, body: Callable[[Index, int], None]) -> None:
        vector_loop(self.call.b, self.size, lanes_for(self.call.target, f64, [1]), body)

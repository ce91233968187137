"""The kernel of determinants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.nests import Index, linear, nest, vector_loop
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.wide import Parts, Wide, wide_numbers
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.linear import DetOp
from glow_mlir.dialects.shapes import element_of, size_along, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@kernel("determinant")
class DeterminantKernel(Kernel[DetOp]):
    """
    Gaussian elimination with row pivoting on a copy of each matrix in wide numbers: f32 loses digits to cancellation.

    A column without a pivot makes the determinant 0, and the elimination goes on as if the pivot were 1.
    """

    name = "determinant"
    RUN_TIME_SIZES = True

    def accepts(self, op: DetOp) -> bool:
        static(sizes_of(op.input)[-2:])  # The copy has a fixed size, so that rows and columns have to be known.
        return True

    def scratch(self, op: DetOp, target: Target) -> Sequence[Buffer]:
        rows, numbers = max(1, size_along(op.input, -1)), wide_numbers(target, element_of(op.input))
        return [((numbers.parts * rows, rows), numbers.element)]

    def emit(self, call: KernelCall[DetOp]) -> None:
        b, source, result = call.b, call.one("input"), call.result
        numbers = wide_numbers(call.target, source.element)
        matrix = _Matrix(call, call.one("scratch").pointer, size_along(source.value, -1), numbers)

        def one(indices: list[Index]) -> None:
            matrix.copy(linear(indices, source.strides[:-2]))
            determinant = numbers.rounded(b, matrix.eliminate(), computed(result.element))
            store(b, result, linear(indices, result.strides), determinant)

        nest(b, source.extents[:-2], one)


@dataclass(frozen=True)
class _Matrix:
    """A square matrix of wide numbers in scratch memory: all first parts, then all second parts."""

    call: KernelCall
    pointer: Value
    size: int
    numbers: Wide

    def _at(self, part: int, row: Index, column: Index) -> Value:
        return self.pointer.at(row * self.size + (column + part * self.size * self.size), self.numbers.element)

    def _load(self, row: Index, column: Index, width: int = 1) -> Parts:
        type_ = vector(self.numbers.element, width)
        return tuple(self._at(part, row, column).load(type_) for part in range(self.numbers.parts))

    def _store(self, row: Index, column: Index, values: Parts) -> None:
        for part, value in enumerate(values):
            self._at(part, row, column).store(value)

    def copy(self, start: Index) -> None:
        """Fill the matrix from the operand's matrix at an element offset."""
        b, source = self.call.b, self.call.one("input")
        row_step, column_step = source.strides[-2:]
        lanes = lanes_for(self.call.target, self.numbers.element, [column_step])
        with b.loop(0, self.size) as row:

            def move(column: Index, width: int) -> None:
                offset = start + (row * row_step + column * column_step)
                self._store(row, column, self.numbers.of(b, load(b, source, offset, column_step, width)))

            vector_loop(b, self.size, lanes, move)

    def eliminate(self) -> Parts:
        """The product of the pivots, negated with each exchange of rows."""
        b, numbers = self.call.b, self.numbers
        one, zero = (b.constant(value, numbers.element) for value in (1.0, 0.0))
        with b.loop(0, self.size, carried=(one, zero)[: numbers.parts]) as columns:
            k = columns.index
            row = self._pivot_row(k)
            self._exchange(k, row)
            pivot = self._load(k, k)
            divisor = (b.select(pivot[0].eq(0.0), 1.0, pivot[0]), *pivot[1:])
            with b.loop(k + 1, self.size) as below:
                self._subtract(below, k, numbers.divide(b, self._load(below, k), divisor))
            product = numbers.multiply(b, tuple(columns.values), pivot)
            columns.set(*(b.select(row.eq(k), part, -part) for part in product))
        return tuple(columns.results)

    def _pivot_row(self, k: Value) -> Value:
        """The row from `k` on with the largest element in column `k`."""
        b, element = self.call.b, self.numbers.element
        with b.loop(k, self.size, carried=[b.constant(-1.0, element), k]) as rows:
            largest, position = rows.values
            size = b.fabs(self._at(0, rows.index, k).load(element))
            rows.set(b.select(size > largest, size, largest), b.select(size > largest, rows.index, position))
        return rows.results[1]

    def _exchange(self, first: Value, second: Value) -> None:
        def swap(column: Index, width: int) -> None:
            one, other = self._load(first, column, width), self._load(second, column, width)
            self._store(first, column, other)
            self._store(second, column, one)

        self._each_vector(swap)

    def _subtract(self, row: Value, other: Value, factor: Parts) -> None:
        """Subtract a multiple of another row; the remainders in the pivot's column are not read again."""
        b, numbers = self.call.b, self.numbers

        def step(column: Index, width: int) -> None:
            spread = tuple(b.splat(part, width) for part in factor)
            multiple = numbers.multiply(b, self._load(other, column, width), spread)
            self._store(row, column, numbers.subtract(b, self._load(row, column, width), multiple))

        self._each_vector(step)

    def _each_vector(self, body: Callable[[Index, int], None]) -> None:
        lanes = lanes_for(self.call.target, self.numbers.element, [1])
        vector_loop(self.call.b, self.size, lanes, body)

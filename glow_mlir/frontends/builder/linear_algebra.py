"""Factorizations of matrices and solutions of triangular systems, as loops over columns or rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, converted, equal, sqrt, where
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from glow_mlir.dialects.glow_high.indexing import GatherElementsOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.glow_high.reductions import ArgMaxOp
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of, sizes_of
from glow_mlir.frontends.builder.complex_formulas import divided, multiplied
from glow_mlir.frontends.builder.formulas import Formulas
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.support.dataclass import dataclass


def transposed_matrices(node: NodeBuilder, value: SSAValue) -> SSAValue:
    """Matrices [..., M, N] as [..., N, M]."""
    count = rank_of(value)
    return node.emit(TransposeOp, value, permutation=(*range(count - 2), count - 1, count - 2))


@dataclass
class Trip:
    """A trip of a loop over rows or columns of matrices: its `number`, a value of i64, and what it computes with."""

    node: NodeBuilder
    formulas: Formulas
    number: SSAValue

    def part(self, value: SSAValue, axis: int) -> SSAValue:
        """The row (axis -2) or column (axis -1) of matrices that has the number."""
        return self.node.emit(DynamicSliceOp, value, self.number, axis=rank_of(value) + axis, size=1)

    def updated(self, value: SSAValue, part: SSAValue, axis: int) -> SSAValue:
        """Matrices with that row or column replaced."""
        return self.node.emit(DynamicUpdateSliceOp, value, part, self.number, axis=rank_of(value) + axis)

    def here(self) -> Tensor:
        """The number, for formulas."""
        return self.formulas.of(self.number)

    def positions(self, count: int, axis: int) -> Tensor:
        """The positions along the rows (axis -2) or columns (axis -1) of matrices, for formulas."""
        shape = (count, 1) if axis == -2 else (count,)
        return self.formulas.of(self.node.constant(np.arange(count).reshape(shape)))

    def reshaped(self, value: SSAValue, *shape: int) -> SSAValue:
        """A value in another shape."""
        return self.node.emit(ReshapeOp, value, shape=shape)


Parts = Sequence[SSAValue]
"""Matrices of real numbers, or the real and the imaginary parts of those of complex numbers."""

Numbers = Sequence[Tensor]
"""The same in formulas."""


def _product(node: NodeBuilder, formulas: Formulas, left: Parts, right: Parts) -> Numbers:
    """The matrix product."""
    products = [[formulas.of(node.emit(MatMulOp, one, other)) for other in right] for one in left]
    if len(left) == 1:
        return products[0]
    (reals, first), (second, imaginaries) = products
    return reals - imaginaries, first + second


def _multiplied(x: Numbers, y: Numbers) -> Numbers:
    return [x[0] * y[0]] if len(x) == 1 else multiplied((x[0], x[1]), (y[0], y[1]))


def _divided(x: Numbers, y: Numbers) -> Numbers:
    return [x[0] / y[0]] if len(x) == 1 else divided((x[0], x[1]), (y[0], y[1]))


def _less(x: Numbers, y: Numbers) -> Numbers:
    return [one - other for one, other in zip(x, y, strict=True)]


def _size(x: Numbers) -> Tensor:
    """The magnitude of numbers as LAPACK chooses pivots by it: the sum of those of both parts."""
    return abs(x[0]) if len(x) == 1 else abs(x[0]) + abs(x[1])


def triangular_solution(node: NodeBuilder, matrix: Parts, right: Parts, upper: bool, is_unit: bool) -> Parts:
    """
    X with `matrix` · X = `right` by substitution: each trip of a loop computes a row.

    Matrices are [batch…, N, N] and [batch…, N, K]. The other triangle is not read, nor the diagonal if `is_unit`.
    """
    count = shape_of(matrix[0])[-1]
    body = Body(node, [node.splat(0, element_of(part), sizes_of(part)) for part in right], ())
    known = body.carried
    with node.builder.inside(body.block):
        formulas = Formulas(node)
        number = body.block.args[0]
        if upper:
            number = formulas.value((count - 1) - formulas.of(number))
        trip = Trip(node, formulas, number)
        coefficients = [trip.part(part, -2) for part in matrix]
        positions = trip.positions(count, -1)
        is_read = positions > trip.here() if upper else positions < trip.here()
        others = [formulas.value(where(is_read, formulas.of(part), 0.0)) for part in coefficients]
        row = _less([formulas.of(trip.part(part, -2)) for part in right], _product(node, formulas, others, known))
        if not is_unit:
            row = _divided(row, [formulas.of(trip.part(part, -1)) for part in coefficients])
        found = [trip.updated(part, formulas.value(new), -2) for part, new in zip(known, row, strict=True)]
    return body.emit(Trips(count), found, [])


def cholesky_factor(node: NodeBuilder, matrix: Parts) -> tuple[Parts, SSAValue]:
    """
    The lower triangular L of symmetric or Hermitian matrices L · Lᴴ, [batch…, N, N], of which that triangle is read.

    The second result, i32 of [batch…], is 0, or the number, from 1 on, of the first pivot that is not positive; L is
    not a factor then.
    """
    *batch, count, _ = shape_of(matrix[0])
    none = [node.splat(0, element_of(part), sizes_of(part)) for part in matrix]
    body = Body(node, [*none, node.splat(0, i32, tuple(batch))], ())
    *known, failed = body.carried
    with node.builder.inside(body.block):
        formulas = Formulas(node)
        trip = Trip(node, formulas, body.block.args[0])
        row = [trip.reshaped(trip.part(part, -2), *batch, count, 1) for part in known]
        row[1:] = [formulas.value(-formulas.of(part)) for part in row[1:]]
        rest = _less([formulas.of(trip.part(part, -1)) for part in matrix], _product(node, formulas, known, row))
        column = [formulas.value(part) for part in rest]
        pivot = formulas.of(trip.part(column[0], -2))
        root, positions = sqrt(pivot), trip.positions(count, -2)
        new = [where(positions > trip.here(), formulas.of(part) / root, 0.0) for part in column]
        new[0] = where(equal(positions, trip.here()), root, new[0])
        found = [trip.updated(part, formulas.value(values), -1) for part, values in zip(known, new, strict=True)]
        bad = trip.reshaped(formulas.value(where(pivot > 0.0, pivot * 0.0, 1.0)), *batch)
        is_first = (formulas.of(bad) > 0.0) & equal(formulas.of(failed), 0)
        failure = formulas.value(where(is_first, converted(trip.here() + 1, i32), formulas.of(failed)))
    *factor, failed = body.emit(Trips(count), [*found, failure], [])
    return factor, failed


def lu_factors(node: NodeBuilder, matrix: Parts) -> tuple[Parts, SSAValue, SSAValue]:
    """
    The factors L and U of matrices [batch…, M, N] whose rows are swapped: L has a diagonal of 1, which is left out.

    The second result, i32 of [batch…, min(M, N)], has the row, from 0 on, that each row was swapped with, the one with
    the largest pivot. The third one, i32 of [batch…], is 0, or the number, from 1 on, of the first pivot that is 0.
    """
    *batch, rows, columns = shape_of(matrix[0])
    count = min(rows, columns)
    body = Body(node, [*matrix, node.splat(0, i32, tuple(batch))], ())
    *known, failed = body.carried
    with node.builder.inside(body.block):
        formulas = Formulas(node)
        trip = Trip(node, formulas, body.block.args[0])
        of, here = formulas.of, trip.here()
        down = trip.positions(rows, -2)
        sizes = formulas.value(where(down >= here, _size([of(trip.part(part, -1)) for part in known]), -1.0))
        chosen = node.emit(ArgMaxOp, sizes, axis=rank_of(sizes) - 2, keepdims=True)
        index = node.emit(ExpandOp, chosen, shape=(*batch, 1, columns))
        turned: list[SSAValue] = []
        for part in known:
            top, swapped = of(trip.part(part, -2)), of(node.emit(GatherElementsOp, part, index, axis=rank_of(part) - 2))
            rest = where(equal(down, here), swapped, where(equal(down, of(chosen)), top, of(part)))
            turned.append(formulas.value(rest))
        pivot = [of(trip.part(trip.part(part, -2), -1)) for part in turned]
        found = [formulas.value(part) for part in _eliminated(trip, turned, pivot)]
        is_zero = formulas.of(trip.reshaped(formulas.value(_size(pivot)), *batch))
        is_first = equal(is_zero, 0.0) & equal(of(failed), 0)
        failure = formulas.value(where(is_first, converted(here + 1, i32), of(failed)))
        row = formulas.value(converted(of(trip.reshaped(chosen, *batch)), i32))
    *factors, failed, pivots = body.emit(Trips(count), [*found, failure], [Rows(row)])
    return factors, node.emit(TransposeOp, pivots, permutation=(*range(1, len(batch) + 1), 0)), failed


def _eliminated(trip: Trip, turned: Parts, pivot: Numbers) -> Numbers:
    """Matrices with multiples of the row of the trip taken off those below it, and the factors in its column."""
    of, here = trip.formulas.of, trip.here()
    rows, columns = shape_of(turned[0])[-2:]
    down, across = trip.positions(rows, -2), trip.positions(columns, -1)
    divisor = [where(equal(_size(pivot), 0.0), 1.0, pivot[0]), *pivot[1:]]
    factor = _divided([of(trip.part(part, -1)) for part in turned], divisor)
    given = [of(part) for part in turned]
    reduced = _less(given, _multiplied(factor, [of(trip.part(part, -2)) for part in turned]))
    found: list[Tensor] = []
    for own, new, left in zip(factor, reduced, given, strict=True):
        eliminated = where(equal(across, here), own, where(across > here, new, left))
        found.append(where(down > here, eliminated, left))
    return found

"""Factorizations of matrices and solutions of triangular systems, as loops over columns or rows."""

from __future__ import annotations

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


def triangular_solution(node: NodeBuilder, matrix: SSAValue, right: SSAValue, upper: bool, is_unit: bool) -> SSAValue:
    """
    X with `matrix` · X = `right` by substitution: each trip of a loop computes a row.

    Matrices are [batch…, N, N] and [batch…, N, K]. The other triangle is not read, nor the diagonal if `is_unit`.
    """
    count = shape_of(matrix)[-1]
    body = Body(node, [node.splat(0, element_of(right), sizes_of(right))], ())
    (known,) = body.carried
    with node.builder.inside(body.block):
        formulas = Formulas(node)
        number = body.block.args[0]
        if upper:
            number = formulas.value((count - 1) - formulas.of(number))
        trip = Trip(node, formulas, number)
        coefficients = trip.part(matrix, -2)
        positions = trip.positions(count, -1)
        is_read = positions > trip.here() if upper else positions < trip.here()
        others = formulas.value(where(is_read, formulas.of(coefficients), 0.0))
        row = formulas.of(trip.part(right, -2)) - formulas.of(node.emit(MatMulOp, others, known))
        if not is_unit:
            row = row / formulas.of(trip.part(coefficients, -1))
        found = trip.updated(known, formulas.value(row), -2)
    return body.emit(Trips(count), [found], [])[0]


def cholesky_factor(node: NodeBuilder, matrix: SSAValue) -> tuple[SSAValue, SSAValue]:
    """
    The lower triangular L of symmetric matrices L · Lᵀ, [batch…, N, N], of which the lower triangle is read.

    The second result, i32 of [batch…], is 0, or the number, from 1 on, of the first pivot that is not positive; L is
    not a factor then.
    """
    *batch, count, _ = shape_of(matrix)
    none = node.splat(0, element_of(matrix), sizes_of(matrix))
    body = Body(node, [none, node.splat(0, i32, tuple(batch))], ())
    known, failed = body.carried
    with node.builder.inside(body.block):
        formulas = Formulas(node)
        trip = Trip(node, formulas, body.block.args[0])
        row = trip.reshaped(trip.part(known, -2), *batch, count, 1)
        rest = formulas.of(trip.part(matrix, -1)) - formulas.of(node.emit(MatMulOp, known, row))
        column = formulas.value(rest)
        pivot = formulas.of(trip.part(column, -2))
        root, positions = sqrt(pivot), trip.positions(count, -2)
        below = where(positions > trip.here(), formulas.of(column) / root, 0.0)
        found = trip.updated(known, formulas.value(where(equal(positions, trip.here()), root, below)), -1)
        bad = trip.reshaped(formulas.value(where(pivot > 0.0, pivot * 0.0, 1.0)), *batch)
        is_first = (formulas.of(bad) > 0.0) & equal(formulas.of(failed), 0)
        failure = formulas.value(where(is_first, converted(trip.here() + 1, i32), formulas.of(failed)))
    factor, failed = body.emit(Trips(count), [found, failure], [])
    return factor, failed


def lu_factors(node: NodeBuilder, matrix: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """
    The factors L and U of matrices [batch…, M, N] whose rows are swapped: L has a diagonal of 1, which is left out.

    The second result, i32 of [batch…, min(M, N)], has the row, from 0 on, that each row was swapped with, the one with
    the largest pivot. The third one, i32 of [batch…], is 0, or the number, from 1 on, of the first pivot that is 0.
    """
    *batch, rows, columns = shape_of(matrix)
    count = min(rows, columns)
    body = Body(node, [matrix, node.splat(0, i32, tuple(batch))], ())
    known, failed = body.carried
    with node.builder.inside(body.block):
        formulas = Formulas(node)
        trip = Trip(node, formulas, body.block.args[0])
        of, here = formulas.of, trip.here()
        down, across = trip.positions(rows, -2), trip.positions(columns, -1)
        column = trip.part(known, -1)
        sizes = formulas.value(where(down >= here, abs(of(column)), -1.0))
        chosen = node.emit(ArgMaxOp, sizes, axis=rank_of(sizes) - 2, keepdims=True)
        index = node.emit(ExpandOp, chosen, shape=(*batch, 1, columns))
        top, swapped = of(trip.part(known, -2)), of(node.emit(GatherElementsOp, known, index, axis=rank_of(known) - 2))
        rest = where(equal(down, here), swapped, where(equal(down, of(chosen)), top, of(known)))
        turned = formulas.value(rest)
        pivot = of(trip.part(trip.part(turned, -2), -1))
        factor = of(trip.part(turned, -1)) / where(equal(pivot, 0.0), 1.0, pivot)
        reduced = of(turned) - factor * of(trip.part(turned, -2))
        eliminated = where(equal(across, here), factor, where(across > here, reduced, of(turned)))
        found = formulas.value(where(down > here, eliminated, of(turned)))
        is_zero = formulas.of(trip.reshaped(formulas.value(pivot), *batch))
        is_first = equal(is_zero, 0.0) & equal(of(failed), 0)
        failure = formulas.value(where(is_first, converted(here + 1, i32), of(failed)))
        row = formulas.value(converted(of(trip.reshaped(chosen, *batch)), i32))
    factors, failed, pivots = body.emit(Trips(count), [found, failure], [Rows(row)])
    return factors, node.emit(TransposeOp, pivots, permutation=(*range(1, len(batch) + 1), 0)), failed

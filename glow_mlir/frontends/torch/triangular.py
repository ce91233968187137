"""PyTorch's solver of triangular systems of equations."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import equal, where
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.builder.products import numpy_product
from glow_mlir.frontends.builder.slices import iota
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import transposed
from glow_mlir.frontends.torch.node import TorchNode


@torch_operator("linalg_solve_triangular.default")
def solve_triangular(
    node: TorchNode,
    matrix: SSAValue,
    right: SSAValue,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> SSAValue:
    """
    Solve `matrix` · X = `right` for X, or X · `matrix` = `right` unless `left`, by substitution row by row.

    The other triangle is not read, nor the diagonal if `unitriangular`.
    """
    batch = node.sizes[:-2]
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    matrix = node.expanded(matrix, (*batch, *sizes_of(matrix)[-2:]))
    right = node.expanded(right)
    if left:
        return _solved(node, matrix, right, upper, unitriangular)
    found = _solved(node, _turned(node, matrix), _turned(node, right), not upper, unitriangular)
    return _turned(node, found)


def _turned(node: TorchNode, value: SSAValue) -> SSAValue:
    """Transpose matrices."""
    count = rank_of(value)
    return transposed(node, value, (*range(count - 2), count - 1, count - 2))


def _solved(node: TorchNode, matrix: SSAValue, right: SSAValue, upper: bool, is_unit: bool) -> SSAValue:
    """Compute one row of the result in each trip; rows that are not known yet are 0."""
    count, axis = sizes_of(matrix)[-1], rank_of(matrix) - 2
    none = node.splat(0, element_of(right), sizes_of(right))
    scanned = [Rows(moved_axis(node, value, axis, 0), upper) for value in (matrix, right)]
    scanned.append(Rows(iota(node, count), upper))
    body = Body(node, [none], scanned)
    (known,), (coefficients, own, position) = body.carried, body.rows
    with node.builder.inside(body.block):
        of = node.formulas.of
        batch = sizes_of(right)[:-2]
        positions = of(iota(node, count))
        is_read = positions > of(position) if upper else positions < of(position)
        others = node.reshaped(node.value(where(is_read, of(coefficients), 0.0)), (*batch, 1, count))
        rest = of(node.reshaped(own, (*batch, 1, sizes_of(right)[-1]))) - of(numpy_product(node, others, known))
        if not is_unit:
            pivot = node.emit(GatherOp, coefficients, position, axis=axis)
            rest = rest / of(node.reshaped(pivot, (*batch, 1, 1)))
        row = equal(of(node.reshaped(iota(node, count), (count, 1))), of(position))
        found = node.value(where(row, rest, of(known)))
    return body.emit(Trips(count), [found], [])[0]

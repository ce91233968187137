"""PyTorch's solver of triangular systems of equations."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.frontends.builder.linear_algebra import transposed_matrices, triangular_solution
from glow_mlir.frontends.torch.functions import torch_operator
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
        return triangular_solution(node, [matrix], [right], upper, unitriangular)[0]
    matrix, right = (transposed_matrices(node, value) for value in (matrix, right))
    return transposed_matrices(node, triangular_solution(node, [matrix], [right], not upper, unitriangular)[0])

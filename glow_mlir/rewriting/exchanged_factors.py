"""Products whose transpose is the product of the exchanged factors: (LᵀR)ᵀ = RᵀL."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import flag, ints
from glow_mlir.dialects.shapes import Shape, element_of, largest_shape, rank_of, shape_of
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ExchangedFactors:
    """The factors, with the flags of `MatMulOp`, of the product that is the transpose of another one."""

    product: MatMulOp
    """The product that is transposed."""
    left: SSAValue
    right: SSAValue
    transpose_left: bool
    transpose_right: bool


def exchanged_factors(op: TransposeOp, value: SSAValue, storage: Storage) -> ExchangedFactors | None:
    """
    The factors whose product is `value`, a matrix or a reshaped one, transposed as `op` transposes its operand.

    `value` is the operand of `op`, or has its shape. `None` where `value` is no product, has other readers, or a bias;
    where a constant, packed ahead of time, would no longer be on the right; and where more elements would be moved:
    unless one factor is read transposed, both would be.
    """
    reshape = value.owner
    matrix = reshape.input if isinstance(reshape, ReshapeOp) and value.has_one_use() else value
    product = matrix.owner
    if not isinstance(product, MatMulOp) or not matrix.has_one_use() or product.bias is not None:
        return None
    if not is_float(element_of(product.right)) or storage.is_constant(product.right):
        return None
    if shape_of(value) != shape_of(op.input) or not _exchanges(op, shape_of(matrix)):
        return None
    left, turned_left = _source(product.left, flag(product.transpose_left))
    turned_right = flag(product.transpose_right)
    if turned_left == turned_right or (left is not product.left and not _saves_moves(product)):
        return None
    return ExchangedFactors(product, product.right, left, not turned_right, not turned_left)


def _source(value: SSAValue, is_turned: bool) -> tuple[SSAValue, bool]:
    """A factor without the transpose of a matrix in front of it, and whether a product then reads it transposed."""
    transpose = value.owner
    if isinstance(transpose, TransposeOp) and ints(transpose.permutation) == (1, 0):
        return transpose.input, not is_turned
    return value, is_turned


def _saves_moves(product: MatMulOp) -> bool:
    """
    Whether transposing the right factor of a product moves fewer elements than transposing its result, and the left
    factor where nothing else reads that transposed.
    """
    assert rank_of(product.left) == 2
    rows, depth = largest_shape(product.left)
    columns = largest_shape(product.result)[-1]
    return depth * columns < rows * columns + rows * depth * product.left.has_one_use()


def _exchanges(transpose: TransposeOp, matrix: Shape) -> bool:
    """Whether a transpose exchanges the two axes of a matrix, up to axes of size one."""
    shape = shape_of(transpose.input)
    moved = [axis for axis in ints(transpose.permutation) if shape[axis] != 1]
    return len(moved) == 2 and moved[0] > moved[1] and matrix == (shape[moved[1]], shape[moved[0]])

"""Gradients of matrix products and of determinants."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import DetOp, FullyConnectedOp, GroupedMatMulOp, MatMulOp, MatrixProduct
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import element_of, rank_of, size_along, sizes_of
from glow_mlir.differentiation.contributions import Contributions, converted_like, expanded_to, reduced_to, reshaped
from glow_mlir.differentiation.lowered import by_lowering
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import gradient
from glow_mlir.support.symbols import product_of


@gradient(GroupedMatMulOp)
def grouped_matmul(op: GroupedMatMulOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The gradients of products with copies of the matrices."""
    return by_lowering(op, cotangent, emit)


@gradient(MatMulOp)
def matmul(op: MatrixProduct, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """G·Rᵀ and Lᵀ·G, each transposed where the operand is; batches that broadcast are summed."""
    g = converted_like(cotangent, op.left, emit)
    left_is, right_is = flag(op.transpose_left), flag(op.transpose_right)

    def by_left() -> SSAValue:
        if left_is:
            value = emit(MatMulOp, op.right, g, transpose_left=right_is, transpose_right=True)
        else:
            value = emit(MatMulOp, g, op.right, transpose_right=not right_is)
        return reduced_to(value, op.left, emit)

    def by_right() -> SSAValue:
        left, given = (op.left, g) if rank_of(op.right) > 2 or left_is else _as_matrices(op.left, g, emit)
        if right_is:
            value = emit(MatMulOp, given, left, transpose_left=True, transpose_right=left_is)
        else:
            value = emit(MatMulOp, left, given, transpose_left=not left_is)
        return reduced_to(value, op.right, emit)

    return {"left": by_left, "right": by_right, "bias": lambda: reduced_to_bias(cotangent, op.bias, emit)}


def _as_matrices(left: SSAValue, g: SSAValue, emit: Emitter) -> tuple[SSAValue, SSAValue]:
    """Merge batches into the rows of one matrix, so that the product also sums over batches."""
    if rank_of(left) == 2 or sizes_of(left)[:-2] != sizes_of(g)[:-2]:
        return left, g
    flat = [emit(ReshapeOp, v, shape=(product_of(sizes_of(v)[:-1]), sizes_of(v)[-1])) for v in (left, g)]
    return flat[0], flat[1]


@gradient(FullyConnectedOp)
def fully_connected(op: FullyConnectedOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """G·Wᵀ, Xᵀ·G, and the sum of the rows of G."""
    g = converted_like(cotangent, op.input, emit)
    return {
        "input": lambda: emit(MatMulOp, g, op.weights, transpose_right=True),
        "weights": lambda: emit(MatMulOp, op.input, g, transpose_left=True),
        "bias": lambda: reduced_to_bias(cotangent, op.bias, emit),
    }


def reduced_to_bias(cotangent: SSAValue, bias: SSAValue | None, emit: Emitter) -> SSAValue | None:
    """The sum of a cotangent along all axes but the last, in the element type of the added bias."""
    if bias is None:
        return None
    axes = range(rank_of(cotangent) - 1)
    total = emit(ReduceSumOp, cotangent, axes=tuple(axes), keepdims=False)
    return converted_like(total, bias, emit)


MAX_ROWS = 16
"""Maximum number of rows of matrices whose determinants have gradients: the work grows with the fifth power."""


@gradient(DetOp)
def det(op: DetOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    The cotangent times the cofactors (determinants without a row and a column), which also exist for singular matrices.

    Raises `UnsupportedError` for matrices of more than `MAX_ROWS` rows.
    """

    def contribution() -> SSAValue:
        batch, own = sizes_of(op.input)[:-2], size_along(op.input, -1)
        if own > MAX_ROWS:
            reason = f"det of matrices of {own} rows has no gradient, only up to {MAX_ROWS} rows"
            raise UnsupportedError(reason, node=location_name(op.location))
        g = reshaped(cotangent, (*batch, 1, 1), emit)
        if own <= 1:
            return expanded_to(g, sizes_of(op.input), emit)
        elements = reshaped(op.input, (*batch, own * own), emit)
        minors = emit(GatherOp, elements, emit.constant(_minors(own), "minors"), axis=len(batch))
        cofactors = emit(MulOp, emit(DetOp, minors), emit.constant(_signs(own).astype(_dtype(op)), "signs"))
        return emit(MulOp, g, cofactors)

    return {"input": contribution}


def _dtype(op: DetOp) -> np.dtype:
    return numpy_dtype(element_of(op.input))


def _signs(rows: int) -> np.ndarray:
    """1 and -1 alternating along both axes."""
    positions = np.arange(rows)
    return 1 - 2 * ((positions[:, None] + positions) % 2)


def _minors(rows: int) -> np.ndarray:
    """For each matrix element, row by row, the indices of the elements in other rows and columns."""
    others = np.array([[other for other in range(rows) if other != position] for position in range(rows)])
    return others[:, None, :, None] * rows + others[None, :, None, :]

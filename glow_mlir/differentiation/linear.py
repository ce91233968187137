"""Gradients of matrix products."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.differentiation.contributions import Contributions, in_element_of, reduced_to
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.symbols import product_of


@gradient(MatMulOp)
def matmul(op: MatMulOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """G·Rᵀ and Lᵀ·G, each transposed where the operand is; batches that broadcast are summed."""
    g = in_element_of(cotangent, op.left, emit)
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
    """Operands whose batches are rows of one matrix: the sum over batches is then part of the product."""
    if rank_of(left) == 2 or sizes_of(left)[:-2] != sizes_of(g)[:-2]:
        return left, g
    flat = [emit(ReshapeOp, v, shape=(product_of(sizes_of(v)[:-1]), sizes_of(v)[-1])) for v in (left, g)]
    return flat[0], flat[1]


@gradient(FullyConnectedOp)
def fully_connected(op: FullyConnectedOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """G·Wᵀ, Xᵀ·G, and the sum of the rows of G."""
    g = in_element_of(cotangent, op.input, emit)
    return {
        "input": lambda: emit(MatMulOp, g, op.weights, transpose_right=True),
        "weights": lambda: emit(MatMulOp, op.input, g, transpose_left=True),
        "bias": lambda: reduced_to_bias(cotangent, op.bias, emit),
    }


def reduced_to_bias(cotangent: SSAValue, bias: SSAValue | None, emit: Emitter) -> SSAValue | None:
    """The sum of a cotangent along all axes but the last, in the element type of the bias that was added there."""
    if bias is None:
        return None
    axes = range(rank_of(cotangent) - 1)
    total = emit(ReduceSumOp, cotangent, axes=tuple(axes), keepdims=False)
    return in_element_of(total, bias, emit)

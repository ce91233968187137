"""Lowerings of matrix products."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.registry import lowering
from glow_mlir.transforms.emitter import Emitter


@lowering(FullyConnectedOp)
def fully_connected(op: FullyConnectedOp, emit: Emitter) -> SSAValue:
    """A matrix product with a bias (Glow lowers to MatMul and BatchedAdd)."""
    return emit(MatMulOp, op.input, op.weights, op.bias)


@lowering(MatMulOp)
def matmul(op: MatMulOp, emit: Emitter) -> SSAValue:
    """A product of operands that are transposed beforehand."""
    left = _swapped(op.left, emit) if flag(op.transpose_left) else op.left
    right = _swapped(op.right, emit) if flag(op.transpose_right) else op.right
    return emit(MatMulOp, left, right, op.bias)


def _swapped(value: SSAValue, emit: Emitter) -> SSAValue:
    rank = rank_of(value)
    return emit(TransposeOp, value, permutation=(*range(rank - 2), rank - 1, rank - 2))

"""Lowerings of matrix products."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.registry import lowering
from glow_mlir.transforms.emitter import Emitter


@lowering(FullyConnectedOp)
def fully_connected(op: FullyConnectedOp, emit: Emitter) -> SSAValue:
    """A matrix product with a bias (Glow lowers to MatMul and BatchedAdd)."""
    return emit(MatMulOp, op.input, op.weights, op.bias)

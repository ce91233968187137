"""Matrix products by numpy's rules, shared by all front ends."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.frontends.builder.node_builder import NodeBuilder


def numpy_product(node: NodeBuilder, left: SSAValue, right: SSAValue, to: Attribute | None = None) -> SSAValue:
    """
    The product of two operands; a vector is a matrix of one row or column, whose axis is removed from the result.

    `to` is the element type of accumulators and result.
    """
    left_vector, right_vector = rank_of(left) == 1, rank_of(right) == 1
    if left_vector:
        left = node.emit(ReshapeOp, left, shape=(1, *sizes_of(left)))
    if right_vector:
        right = node.emit(ReshapeOp, right, shape=(*sizes_of(right), 1))
    result = node.emit(MatMulOp, left, right, to=to)
    shape = list(sizes_of(result))
    if right_vector:
        shape.pop()
    if left_vector:
        shape.pop(len(shape) - 1 if right_vector else -2)
    return node.emit(ReshapeOp, result, shape=shape) if left_vector or right_vector else result

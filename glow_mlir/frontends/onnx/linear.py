"""ONNX's matrix products, and what else it computes of whole matrices."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.einsum import EinsumOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.elementwise import as_element
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator


@onnx_operator("MatMul")
def matmul(node: Node) -> SSAValue:
    """Numpy's matmul; ONNX keeps the type of narrow integers, and wraps."""
    result = numpy_product(node, node.input(0), node.input(1))
    return as_element(node, result, node.element())


def numpy_product(node: Node, left: SSAValue, right: SSAValue) -> SSAValue:
    """The product of two operands: a vector is a matrix of one row or column, whose axis the result lacks."""
    left_vector, right_vector = node.rank(0) == 1, node.rank(1) == 1
    if left_vector:
        left = node.emit(ReshapeOp, left, shape=(1, *node.sizes(0)))
    if right_vector:
        right = node.emit(ReshapeOp, right, shape=(*node.sizes(1), 1))
    result = node.emit(MatMulOp, left, right)
    shape = list(sizes_of(result))
    if right_vector:
        shape.pop()
    if left_vector:
        shape.pop(len(shape) - 1 if right_vector else -2)
    return node.emit(ReshapeOp, result, shape=shape) if left_vector or right_vector else result


@onnx_operator("Gemm")
def gemm_limited(node: Node) -> SSAValue:
    """Up to opset 6, the third operand has the shape of the result, unless `broadcast`."""
    result = gemm(node)
    if not node.flag("broadcast") and node.sizes(2) != sizes_of(result):
        hint = "up to opset 6, the attribute broadcast allows that"
        reason = f"Gemm: {node.sizes(2)} is not {sizes_of(result)}"
        raise ModelError(reason, node=node.name, hint=hint)
    return result


@onnx_operator("Gemm", since=7)
def gemm(node: Node) -> SSAValue:
    """A fully connected layer where the third operand is a bias vector, else its parts."""
    left, right, addend = node.input(0), node.input(1), node.optional(2)
    alpha, beta = node.float("alpha", 1.0), node.float("beta", 1.0)
    if node.flag("transA"):
        left = node.emit(TransposeOp, left, permutation=(1, 0))
    if node.flag("transB"):
        right = node.emit(TransposeOp, right, permutation=(1, 0))
    columns = sizes_of(right)[1]
    is_vector = addend is not None and sizes_of(addend) in ((columns,), (1, columns)) and isinstance(columns, int)
    if addend is not None and alpha == beta == 1.0 and is_vector:
        return node.emit(FullyConnectedOp, left, right, node.emit(ReshapeOp, addend, shape=(columns,)))
    result = node.emit(MatMulOp, left, right)
    if alpha != 1.0:
        result = node.emit(MulOp, result, node.constant(alpha, like=result))
    if addend is None:
        return result
    if beta != 1.0:
        addend = node.emit(MulOp, addend, node.constant(beta, like=addend))
    return node.emit(AddOp, result, addend)


@onnx_operator("Einsum", since=12)
def einsum(node: Node) -> SSAValue:
    """Sums of products by labelled axes."""
    return node.emit(EinsumOp, node.present(), equation=node.text("equation").replace(" ", ""))

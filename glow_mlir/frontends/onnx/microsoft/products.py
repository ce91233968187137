"""onnxruntime's matrix products with fused transposes, factors and activations."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.frontends.builder.products import numpy_product
from glow_mlir.frontends.onnx.microsoft.activations import activated
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.linear import gemm
from glow_mlir.ir.registry import onnx_operator


def _fused_matmul(node: Node) -> SSAValue:
    """`alpha` times numpy's matmul of operands that may be transposed, or have their rows before the batch."""
    left, right = (_turned(node, position, side) for position, side in enumerate("AB"))
    result, alpha = numpy_product(node, left, right), node.float("alpha", 1.0)
    return result if alpha == 1.0 else node.emit(MulOp, result, node.constant(alpha, like=result))


for _name in ("FusedMatMul", "TransposeMatMul"):
    onnx_operator(_name, domain=ONNXRUNTIME)(_fused_matmul)


def _turned(node: Node, position: int, side: str) -> SSAValue:
    """An operand as matrices; vectors are unchanged."""
    value, rank = node.input(position), node.rank(position)
    if node.flag(f"transBatch{side}") and rank > 2:
        value = moved_axis(node, value, 0, rank - 2)
    if not node.flag(f"trans{side}") or rank < 2:
        return value
    return node.emit(TransposeOp, value, permutation=(*range(rank_of(value) - 2), rank - 1, rank - 2))


@onnx_operator("FusedGemm", domain=ONNXRUNTIME)
def fused_gemm(node: Node) -> SSAValue:
    """A Gemm with an activation."""
    for position in range(2):
        node.check_rank(position, (2,), "both are matrices")
    return activated(node, gemm(node))

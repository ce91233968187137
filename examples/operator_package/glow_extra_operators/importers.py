"""From ONNX nodes to operators."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_extra_operators.operators import BiasGeluOp, CosineSimilarityOp, LogitOp, PairwiseDotProductOp
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator


@onnx_operator("Logit", domain="glow.extra")
def logit(node: Node) -> SSAValue:
    """Limits by `epsilon`."""
    return node.emit(LogitOp, node.input(), epsilon=node.float("epsilon", 1e-6))


@onnx_operator("BiasGelu", domain="glow.fused")
def bias_gelu(node: Node) -> SSAValue:
    """Gelu is the exact one, by erf."""
    return node.emit(BiasGeluOp, node.input(0), node.input(1))


@onnx_operator("CosineSimilarity", domain="glow.extra")
def cosine_similarity(node: Node) -> SSAValue:
    """Rows lie along the last axis."""
    return node.emit(CosineSimilarityOp, node.input(0), node.input(1), epsilon=node.float("epsilon", 1e-8))


@onnx_operator("PairwiseDotProduct", domain="glow.extra")
def pairwise_dot_product(node: Node) -> SSAValue:
    """Pairs of rows of one operand."""
    return node.emit(PairwiseDotProductOp, node.input())

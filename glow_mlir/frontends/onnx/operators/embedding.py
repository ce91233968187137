"""Glow's operators on tables of embeddings, in the domain `glow`."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.embedding import SparseLengthsSumOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator

GLOW = "glow"
"""The domain of Glow's own operators."""


def _sum(
    node: Node,
    indices: int,
    segments: int,
    *,
    weights: int | None = None,
    scales: int | None = None,
    offsets: int | None = None,
    **properties: AttributeValue,
) -> SSAValue:
    """Sum rows of the first operand, given the positions of the other operands; rows of several axes are flattened."""
    data, inner = node.input(), node.shape()[1:]
    if len(inner) != 1:
        data = node.emit(ReshapeOp, data, shape=(node.shape()[0], math.prod(inner)))
    factors = (None if position is None else node.input(position) for position in (weights, scales, offsets))
    result = node.emit(SparseLengthsSumOp, data, node.input(indices), node.input(segments), *factors, **properties)
    return result if len(inner) == 1 else node.emit(ReshapeOp, result, shape=(shape_of(result)[0], *inner))


@onnx_operator("SparseLengthsSum", domain=GLOW)
def sparse_lengths_sum(node: Node) -> SSAValue:
    """Data, indices, lengths."""
    return _sum(node, 1, 2)


@onnx_operator("SparseLengthsWeightedSum", domain=GLOW)
def sparse_lengths_weighted_sum(node: Node) -> SSAValue:
    """Data, weights, indices, lengths."""
    return _sum(node, 2, 3, weights=1)


@onnx_operator("RowwiseQuantizedSparseLengthsWeightedSum", domain=GLOW)
def rowwise_quantized_sparse_lengths_weighted_sum(node: Node) -> SSAValue:
    """Quantized data, scales, offsets, weights, indices, lengths."""
    return _sum(node, 4, 5, weights=3, scales=1, offsets=2)


@onnx_operator("FusedRowwiseQuantizedSparseLengthsSum", domain=GLOW)
def fused_rowwise_quantized_sparse_lengths_sum(node: Node) -> SSAValue:
    """Fused rows, indices, lengths."""
    return _sum(node, 1, 2, fused=True)


@onnx_operator("FusedRowwiseQuantizedSparseLengthsWeightedSum", domain=GLOW)
def fused_rowwise_quantized_sparse_lengths_weighted_sum(node: Node) -> SSAValue:
    """Fused rows, weights, indices, lengths."""
    return _sum(node, 2, 3, weights=1, fused=True)


@onnx_operator("EmbeddingBag", domain=GLOW)
def embedding_bag(node: Node) -> SSAValue:
    """Data, weights, indices, and the starts of bags; with `has_end_offset`, followed by the end of the last one."""
    bounds = "edges" if node.flag("has_end_offset") else "starts"
    return _sum(node, 2, 3, weights=None if node.optional(1) is None else 1, bounds=bounds)

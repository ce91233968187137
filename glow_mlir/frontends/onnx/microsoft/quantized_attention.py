"""onnxruntime's QAttention: self-attention with one quantized product for queries, keys and values."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.dialects.shapes import shape_of, size_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.attention import merged_heads
from glow_mlir.frontends.builder.slices import part_of
from glow_mlir.frontends.onnx.microsoft.key_masks import key_mask
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.quantization import dequantized
from glow_mlir.ir.registry import onnx_operator

INPUT, WEIGHTS, BIAS, INPUT_SCALE, WEIGHTS_SCALE, MASK, INPUT_ZERO, WEIGHTS_ZERO, PAST = range(9)
"""Positions of the operands."""

AXES = {
    INPUT: (3, "[batch, length, elements]"),
    WEIGHTS: (2, "[elements, 3 * width]"),
    BIAS: (1, "[3 * width]"),
    PAST: (5, "[2, batch, heads, length, elements]"),
}
"""Position → the operand's rank, and a description of its axes."""

QUERY, KEY, VALUE = range(3)
"""The thirds of the weights' columns."""


@onnx_operator("QAttention", domain=ONNXRUNTIME)
def qattention(node: Node) -> list[SSAValue | None]:
    """
    Attention on the heads of a quantized product.

    The second result is the cache: past keys and values followed by the new ones.
    """
    if node.flag("do_rotary") or node.flag("past_present_share_buffer"):
        raise node.unsupported("rotary positions and overwritten past buffers are not supported")
    for position, (rank, axes) in AXES.items():
        node.check_rank(position, (rank,), f"it is {axes}")
    query, key, value = _parts(node)
    past = 0
    if (before := node.optional(PAST)) is not None:
        past = shape_of(before)[3]
        key, value = (
            node.emit(ConcatOp, [part_of(node, before, number), new], axis=2) for number, new in ((0, key), (1, value))
        )
    depth = shape_of(query)[-1]
    scale = node.float("scale", 0.0) or 1 / math.sqrt(depth)
    causal = {"causal": True, "past": past} if node.flag("unidirectional") else {}
    mask = key_mask(node, MASK, query, shape_of(key)[2])
    seen = node.emit(AttentionOp, query, key, value, mask, scale=scale, **causal)
    result = merged_heads(node, seen)
    if not node.wants(1):
        return [result]
    kept = [node.emit(ReshapeOp, item, shape=(1, *shape_of(item))) for item in (key, value)]
    return [result, node.emit(ConcatOp, kept, axis=0)]


def _parts(node: Node) -> list[SSAValue]:
    """Queries, keys and values, each [batch, heads, length, elements]."""
    (batch, length, _), (_, columns), heads = node.shape(INPUT), node.shape(WEIGHTS), node.int("num_heads")
    if heads < 1 or columns % (3 * heads):
        reason = f"{node.kind}: {columns} columns of weights are not queries, keys and values of {heads} heads"
        raise ModelError(reason, node=node.name, hint="num_heads divides a third of the columns")
    product = node.emit(MatMulOp, dequantized(node, INPUT, INPUT_SCALE, INPUT_ZERO), _weights(node), node.input(BIAS))
    parts = node.emit(ReshapeOp, product, shape=(batch, length, 3, heads, columns // (3 * heads)))
    moved = node.emit(TransposeOp, parts, permutation=(2, 0, 3, 1, 4))
    return [part_of(node, moved, number) for number in (QUERY, KEY, VALUE)]


def _weights(node: Node) -> SSAValue:
    """The dequantized weights; scales and zero points may be per column."""
    if size_of(node.input(WEIGHTS_SCALE)) == 1:
        return dequantized(node, WEIGHTS, WEIGHTS_SCALE, WEIGHTS_ZERO)
    return node.emit(DequantizeOp, node.input(WEIGHTS), node.input(WEIGHTS_SCALE), node.optional(WEIGHTS_ZERO))

"""onnxruntime's QEmbedLayerNormalization: the normalized sum of rows of quantized tables."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, EqualOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.quantization import dequantized
from glow_mlir.ir.registry import onnx_operator

WORDS, POSITIONS, SEGMENTS, SCALE, BIAS = range(2, 7)
"""Positions of the quantized operands; their scales and zero points follow in this order."""

MASK = 7
SCALES, ZERO_POINTS = 8, 13
"""Positions of the first scale and zero point."""


@onnx_operator("QEmbedLayerNormalization", domain=ONNXRUNTIME)
def qembed_layer_normalization(node: Node) -> Sequence[SSAValue | None]:
    """Normalize the sum of word, position and segment embeddings; also count the words of each sequence."""
    length = node.shape(0)[1]
    total = node.emit(GatherOp, _numbers(node, WORDS), node.input(0), axis=0)
    total = node.emit(AddOp, total, cut(node, _numbers(node, POSITIONS), {0: (0, length)}))
    if node.optional(1) is not None:
        total = node.emit(AddOp, total, node.emit(GatherOp, _numbers(node, SEGMENTS), node.input(1), axis=0))
    operands = total, _numbers(node, SCALE), _numbers(node, BIAS)
    result = node.emit(LayerNormalizationOp, *operands, epsilon=node.float("epsilon", 1e-12))
    return [result, shown_words(node, MASK) if node.wants(1) else None]


def _numbers(node: Node, position: int) -> SSAValue:
    """A dequantized operand."""
    index = position - WORDS
    return dequantized(node, position, SCALES + index, ZERO_POINTS + index)


def shown_words(node: Node, position: int) -> SSAValue:
    """The number of words with mask 1 in each sequence; 0 if there is no mask, the operand at `position`."""
    mask = node.optional(position)
    if mask is None:
        return node.splat(0, i32, node.sizes(0)[:1])
    shown = node.emit(EqualOp, mask, node.constant(1, like=mask))
    return node.emit(ReduceSumOp, node.emit(CastOp, shown, to=i32), axes=[1], keepdims=False)

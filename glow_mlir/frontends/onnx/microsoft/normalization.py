"""onnxruntime's normalizations fused with preceding sums or embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.microsoft.quantized_embedding import shown_words
from glow_mlir.frontends.onnx.models.doubts import AS_IN_ONNXRUNTIME
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.normalization import Statistics
from glow_mlir.ir.registry import onnx_operator

MEAN, INVERSE, SUM = 1, 2, 3
"""Positions of the results after the first."""


@onnx_operator("SkipLayerNormalization", domain=ONNXRUNTIME)
def skip_layer_normalization(node: Node) -> Sequence[SSAValue | None]:
    """Layer normalization of x + skip + bias, which is a result as well; operands are x, skip, scale, offset, bias."""
    total = _sum(node, 4)
    scale, epsilon = _of_one_type(node, 2), node.float("epsilon", 1e-12)
    offset = None if node.optional(3) is None else _of_one_type(node, 3)
    if not node.wants(MEAN) and not node.wants(INVERSE):
        return node.emit(ops.LayerNormalizationOp, total, scale, offset, epsilon=epsilon), None, None, total
    found = Statistics.of(node, total, -1, epsilon)
    return found.normalized(node, scale, offset), found.mean, found.inverse, total


@onnx_operator("SkipSimplifiedLayerNormalization", domain=ONNXRUNTIME)
def skip_simplified_layer_normalization(node: Node) -> Sequence[SSAValue | None]:
    """RMS normalization of x + skip + bias, which is a result as well; operands are x, skip, scale, bias."""
    total = _sum(node, 3)
    scale, epsilon = _of_one_type(node, 2), node.float("epsilon", 1e-12)
    if not node.wants(MEAN) and not node.wants(INVERSE):
        return node.emit(ops.RmsNormalizationOp, total, scale, epsilon=epsilon), None, None, total
    found = Statistics.of(node, total, -1, epsilon, is_centred=False)
    return found.normalized(node, scale), found.mean, found.inverse, total


def _sum(node: Node, bias: int) -> SSAValue:
    """The sum of the first two operands and of the optional operand at position `bias`."""
    for position, ranks in ((0, (2, 3)), (1, (2, 3)), (2, (1,))):
        node.check_rank(
            position, ranks, "values are [batch, length, elements] or [tokens, elements], scales [elements]"
        )
    total = node.emit(AddOp, node.input(0), _of_one_type(node, 1))
    return total if node.optional(bias) is None else node.emit(AddOp, total, _of_one_type(node, bias))


def _of_one_type(node: Node, position: int) -> SSAValue:
    """An operand, converted to the element type of the first one with a doubt if it differs."""
    value = node.input(position)
    if element_of(value) != node.element():
        reason = f"operand {position} is {element_of(value)}, and operand 0 {node.element()}"
        node.doubt(reason, "it is converted", "all operands have one type")
        return node.cast(value, node.element())
    return value


def _simplified_layer_normalization(node: Node) -> Sequence[SSAValue]:
    """RMSNormalization under onnxruntime's earlier name; the inverse deviation is a result as well."""
    if not node.domain:
        node.custom("it is in no opset of ONNX", AS_IN_ONNXRUNTIME)
    axis, epsilon = node.int("axis", -1), node.float("epsilon", 1e-5)
    scale = node.input(1)
    value = node.cast(node.input(0), element_of(scale))
    if not node.wants(1):
        return (node.emit(ops.RmsNormalizationOp, value, scale, axis=axis, epsilon=epsilon),)
    found = Statistics.of(node, value, axis, epsilon, is_centred=False)
    return found.normalized(node, scale), node.cast(found.inverse, f32)


for _domain in ("", ONNXRUNTIME):
    # onnxruntime also accepts it in ONNX's own domain, although the standard does not define it.
    onnx_operator("SimplifiedLayerNormalization", domain=_domain)(_simplified_layer_normalization)


WORDS, SEGMENTS, MASK, POSITIONS = 0, 1, 7, 8
"""Positions of the integer operands of an embedding."""

_TABLES = {2: 2, 3: 2, 4: 2, 5: 1, 6: 1, WORDS: 2, SEGMENTS: 2, MASK: 2, POSITIONS: 2}
"""Position → the rank."""


@onnx_operator("EmbedLayerNormalization", domain=ONNXRUNTIME)
def embed_layer_normalization(node: Node) -> Sequence[SSAValue | None]:
    """
    Normalize the sum of word, position and segment embeddings.

    Further results are the number of words of each sequence, and the sum itself.
    """
    for position, rank in _TABLES.items():
        node.check_rank(position, (rank,), "words, segments, places and mask are [batch, length], tables have rows")
    total = node.emit(AddOp, node.emit(GatherOp, node.input(2), node.input(WORDS), axis=0), _positions(node))
    if (segments := node.optional(SEGMENTS)) is not None:
        total = node.emit(AddOp, total, node.emit(GatherOp, node.input(4), segments, axis=0))
    epsilon = node.float("epsilon", 1e-12)
    result = node.emit(ops.LayerNormalizationOp, total, node.input(5), node.input(6), epsilon=epsilon)
    return result, shown_words(node, MASK) if node.wants(1) else None, total


def _positions(node: Node) -> SSAValue:
    """The rows of the position table: at given positions, or else the first rows, one for each word."""
    table, positions = node.input(3), node.optional(POSITIONS)
    if positions is not None:
        return node.emit(GatherOp, table, positions, axis=0)
    return cut(node, table, {0: (0, sizes_of(node.input(WORDS))[1])})

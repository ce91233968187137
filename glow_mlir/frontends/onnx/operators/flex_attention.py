"""FlexAttention, a preview operator of ONNX: attention whose scores and weights are modified by subgraphs."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.shapes import element_of, size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.attention import Groups
from glow_mlir.frontends.onnx.models.types import element_of_onnx
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator

PREVIEW = "ai.onnx.preview"
"""The domain of preview operators, which the standard may still change."""


@onnx_operator("FlexAttention", domain=PREVIEW)
def flex_attention(node: Node) -> SSAValue | None:
    """
    One attention operator.

    If a subgraph modifies scores or weights, or these have a wider element type than the operands, the steps are
    separate operators.
    """
    for position in range(3):
        node.check_rank(position, (4,), "queries, keys and values are [batch, heads, length, elements]")
    query, key, value = (node.input(position) for position in range(3))
    groups = _groups(node)
    scale = node.float("scale", 0.0) if node.has("scale") else 1 / math.sqrt(max(size_along(query, -1), 1))
    operands = groups.split(node, query), groups.apart(node, key), groups.apart(node, value)
    element, computed = node.element(), _computed(node)
    if not node.has("score_mod") and not node.has("prob_mod") and byte_width(element) >= byte_width(computed):
        return groups.joined(node, node.emit(AttentionOp, *operands, scale=scale))
    queries, keys, values = operands
    scores = node.emit(MatMulOp, *(node.cast(operand, computed) for operand in (queries, keys)), transpose_right=True)
    scores = node.emit(MulOp, scores, node.splat(scale, scores))
    changed = _changed(node, "score_mod", groups.joined(node, scores))
    weights = None if changed is None else _changed(node, "prob_mod", node.emit(SoftmaxOp, changed, axis=-1))
    if weights is None:
        return None
    result = node.emit(MatMulOp, groups.split(node, node.cast(weights, element_of(values))), values)
    return groups.joined(node, result)


def _groups(node: Node) -> Groups:
    """The groups of heads; raises `ModelError` if heads of queries cannot evenly share those of keys and values."""
    queries, keys, values = (size_along(node.input(position), 1) for position in range(3))
    if keys != values or keys < 1 or queries % keys:
        reason = f"{queries} heads of queries cannot share {keys} of keys and {values} of values"
        raise ModelError(
            reason, node=node.name, hint="keys and values have as many heads, a divisor of those of queries"
        )
    return Groups(queries, keys)


def _computed(node: Node) -> Attribute:
    """The element type of scores and weights."""
    if kind := node.int("softmax_precision", 0):
        return element_of_onnx(kind, "the scores of FlexAttention")
    return f64 if node.element() == f64 else f32


def _changed(node: Node, name: str, value: SSAValue) -> SSAValue | None:
    """Apply the subgraph `name`, which has one input and one output, to a value; without it, the value itself."""
    if not node.has(name):
        return value
    graph = node.subgraph(name)
    if len(graph.input) != 1 or len(graph.output) != 1:
        reason = f"{name} of {node.kind} takes {len(graph.input)} values and gives {len(graph.output)}"
        raise ModelError(reason, node=node.name, hint="expected one input and one output")
    results = node.inline(name, [value])
    if results is None:
        return None
    if sizes_of(results[0]) != sizes_of(value) or element_of(results[0]) != element_of(value):
        reason = f"{name} of {node.kind} gives {results[0].type}, not {value.type}"
        raise ModelError(reason, node=node.name, hint="input and output must have the same type")
    return results[0]

"""ONNX's attention operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp
from glow_mlir.dialects.glow_high.linear_attention import LinearAttentionOp
from glow_mlir.dialects.properties import size_of_property
from glow_mlir.dialects.shapes import size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.attention import Groups, added_to_scores, merged_heads, split_heads, unseen_is_zero
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Value
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size


@onnx_operator("Attention", since=23)
def attention(node: Node) -> Sequence[Value | None] | None:
    """One operator; the standard's function body for attributes and operands that `AttentionOp` does not have."""
    _check_operands(node)
    if not _is_plain(node):
        return node.expanded()
    query, key, value = (_heads(node, position) for position in range(3))
    past: Size = 0
    if (past_key := node.optional(4)) is not None:
        past = sizes_of(past_key)[2]
        key, value = (
            node.emit(ConcatOp, [old, new], axis=2) for old, new in zip((past_key, node.input(5)), (key, value))
        )
    groups = Groups(size_along(query, 1), size_along(key, 1))
    depth = size_along(query, -1)
    scale = node.float("scale", 0.0) if node.has("scale") else 1 / math.sqrt(depth) if depth else math.inf
    causal = {"causal": True, "past": size_of_property(past)} if node.flag("is_causal") else {}
    mask = node.optional(3)
    if mask is not None:
        mask = groups.split(node, added_to_scores(node, mask, query))
    operands = [groups.split(node, query), groups.apart(node, key), groups.apart(node, value), mask]
    result = node.emit(AttentionOp, *operands, scale=scale, **causal)
    if mask is not None:
        keys = node.sizes(1)[-2] + past
        result = unseen_is_zero(node, result, mask, keys, past if causal else None)
    result = groups.joined(node, result)
    if node.rank() == 3:
        result = merged_heads(node, result)
    return result, key, value


def _is_plain(node: Node) -> bool:
    """Whether one `AttentionOp` computes the node."""
    keys = node.sizes(1)[-2] + (0 if node.optional(4) is None else node.sizes(4)[2])
    mask = node.optional(3)
    return (
        byte_width(node.element()) >= 4
        and node.float("softcap", 0.0) == 0
        and not node.wants(3)
        and not node.has("softmax_precision")
        and node.optional(6) is None
        and max(node.int("left_window_size", -1), node.int("right_window_size", -1)) < 0
        and (mask is None or not sizes_of(mask) or sizes_of(mask)[-1] in (1, keys))
    )


def _heads(node: Node, position: int) -> SSAValue:
    """An operand as [batch, heads, length, elements]."""
    value = node.input(position)
    if node.rank(position) == 4:
        return value
    return split_heads(node, value, _head_count(node, position))


_HEADS = "[batch, heads, length, elements]"
_AXES = {
    (0, 1, 2): ((3, 4), f"queries, keys and values are [batch, length, elements] or {_HEADS}"),
    (4, 5): ((4,), f"earlier keys and values are {_HEADS}"),
}
"""Positions of operands → their valid ranks, and a description of their axes."""


def _check_operands(node: Node) -> None:
    """Raise `ModelError` for queries, keys, values or a cache that cannot be split into heads."""
    if (node.optional(4) is None) != (node.optional(5) is None):
        hint = "pass both earlier keys and values, or neither"
        raise ModelError(f"{node.kind} has only one of the operands 4 and 5", node=node.name, hint=hint)
    for positions, (ranks, hint) in _AXES.items():
        for position in positions:
            node.check_rank(position, ranks, hint)
    queries, keys, values = (_head_count(node, position) for position in range(3))
    if keys != values:
        hint = "each head of keys has a head of values"
        raise ModelError(f"{keys} heads of keys do not match {values} of values", node=node.name, hint=hint)
    if queries % keys:
        hint = "the number of heads of keys divides that of queries"
        raise ModelError(f"{queries} heads of queries cannot share {keys} of keys", node=node.name, hint=hint)


def _head_count(node: Node, position: int) -> int:
    """The number of heads of an operand; raises `ModelError` if it is below 1 or does not divide the elements."""
    if node.rank(position) == 4:
        heads, width = size_along(node.input(position), 1), 0
    else:
        heads, width = node.int("kv_num_heads" if position else "q_num_heads"), size_along(node.input(position), 2)
    if heads < 1 or width % heads:
        hint = "q_num_heads and kv_num_heads are at least 1, and divide the elements of queries, keys and values"
        reason = f"operand {position} of {node.kind} cannot have {heads} heads"
        raise ModelError(reason + f" of {width} elements together" * bool(width), node=node.name, hint=hint)
    return heads


@onnx_operator("LinearAttention", since=27)
def linear_attention(node: Node) -> Sequence[SSAValue]:
    """One operator; a scale of 0 selects the default, `1 / sqrt(depth)`."""
    queries = node.int("q_num_heads")
    depth = node.shape()[-1] // max(queries, 1)
    return node.emit_all(
        LinearAttentionOp,
        *(node.optional(position) for position in range(6)),
        q_num_heads=queries,
        kv_num_heads=node.int("kv_num_heads"),
        scale=node.float("scale", 0.0) or 1 / math.sqrt(max(depth, 1)),
        update_rule=node.text("update_rule", "gated_delta"),
    )

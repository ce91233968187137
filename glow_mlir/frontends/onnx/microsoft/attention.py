"""onnxruntime's Attention, with one product for all heads, and MultiHeadAttention, with separate operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import size_of_property
from glow_mlir.dialects.shapes import size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.attention import merged_heads, split_heads
from glow_mlir.frontends.builder.slices import cut, part_of
from glow_mlir.frontends.onnx.microsoft.key_masks import added, key_mask
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size

Heads = tuple[SSAValue, SSAValue, SSAValue]
"""Queries, keys and values, each [batch, heads, length, elements]."""


def _attended(node: Node, heads: Heads, past: Size, mask: int, bias: int) -> SSAValue:
    """The merged result of attention; `past` keys precede the first query, `mask` and `bias` are operand positions."""
    query, key, _ = heads
    addend = node.optional(bias)
    node.check_rank(bias, (4,), "the score bias is [batch, heads, queries, keys]")
    total = added(node, key_mask(node, mask, query, sizes_of(key)[2]), addend)
    scale = node.float("scale", 0.0) or 1 / math.sqrt(max(size_along(query, -1), 1))
    causal = {"causal": True, "past": size_of_property(past)} if node.flag("unidirectional") else {}
    return merged_heads(node, node.emit(AttentionOp, *heads, total, scale=scale, **causal))


def head_count(node: Node, *widths: int) -> int:
    """The attribute `num_heads`; raises `ModelError` if it does not divide these widths."""
    heads = node.int("num_heads")
    if heads < 1 or any(width % heads for width in widths):
        hint = "num_heads is at least 1, and divides the elements of queries, keys and values"
        raise ModelError(f"{node.kind}: {heads} heads do not fit {list(widths)} elements", node=node.name, hint=hint)
    return heads


# ---- one product

INPUT, WEIGHTS, BIAS, MASK, PAST, ADDEND, PAST_LENGTH = range(7)
"""Positions of the operands of Attention."""

_AXES = {
    INPUT: ((3,), "the input is [batch, length, elements]"),
    WEIGHTS: ((2,), "the weights are [elements, queries + keys + values]"),
    BIAS: ((1,), "the bias has a number for each column of the weights"),
    PAST: ((5,), "the past is [2, batch, heads, length, elements]"),
}
"""Position → the operand's valid ranks, and a description of its axes."""


@onnx_operator("Attention", domain=ONNXRUNTIME)
def attention(node: Node) -> Sequence[SSAValue | None]:
    """Attention on the heads of a product; the second result is the cache of past and new keys and values."""
    if node.flag("do_rotary") or node.flag("past_present_share_buffer") or node.optional(PAST_LENGTH) is not None:
        raise node.unsupported("rotary positions and overwritten past buffers are not supported")
    for position, (ranks, hint) in _AXES.items():
        node.check_rank(position, ranks, hint)
    query, key, value = _projected(node)
    past: Size = 0
    if (before := node.optional(PAST)) is not None:
        past = sizes_of(before)[3]
        key, value = (
            node.emit(ConcatOp, [part_of(node, before, number), new], axis=2) for number, new in ((0, key), (1, value))
        )
    result = _attended(node, (query, key, value), past, MASK, ADDEND)
    if not node.wants(1):
        return (result,)
    kept = [node.emit(ReshapeOp, item, shape=(1, *sizes_of(item))) for item in (key, value)]
    return result, node.emit(ConcatOp, kept, axis=0)


def _projected(node: Node) -> Heads:
    """Queries, keys and values: parts of the columns of one product."""
    columns = size_along(node.input(WEIGHTS), 1)
    widths = node.ints("qkv_hidden_sizes", (columns // 3,) * 3)
    if len(widths) != 3 or sum(widths) != columns or min(widths) < 0 or widths[0] != widths[1]:
        hint = "qkv_hidden_sizes are three widths whose sum is the number of columns, the first two equal"
        reason = f"{node.kind}: {columns} columns of weights are not {list(widths)}"
        raise ModelError(reason, node=node.name, hint=hint)
    heads = head_count(node, *widths)
    product = node.emit(MatMulOp, node.input(INPUT), node.input(WEIGHTS), node.optional(BIAS))
    if len(set(widths)) == 1:
        # One transpose for all three.
        batch, length, _ = node.sizes(INPUT)
        apart = node.emit(ReshapeOp, product, shape=(batch, length, 3, heads, widths[0] // heads))
        moved = node.emit(TransposeOp, apart, permutation=(2, 0, 3, 1, 4))
        return part_of(node, moved, 0), part_of(node, moved, 1), part_of(node, moved, 2)
    return _columns(node, product, widths, heads)


def _columns(node: Node, value: SSAValue, widths: Sequence[int], heads: int) -> Heads:
    """Split the columns of a value [batch, length, elements] into queries, keys and values of the given widths."""
    first, second = widths[0], widths[0] + widths[1]
    bounds = ((0, first), (first, second), (second, second + widths[2]))
    query, key, rest = (split_heads(node, cut(node, value, {2: bound}), heads) for bound in bounds)
    return query, key, rest


# ---- separate operands

KEY, VALUE, OFFSET, KEY_MASK, SCORES, PAST_KEY, PAST_VALUE, SHARED, BEAMS = range(1, 10)
"""Positions of the operands of MultiHeadAttention after the queries."""

PACKED = 5
"""The rank of packed operands: [batch, length, heads, 2 or 3, elements]."""


@onnx_operator("MultiHeadAttention", domain=ONNXRUNTIME)
def multi_head_attention(node: Node) -> Sequence[SSAValue | None]:
    """Attention on queries, keys and values, which may be packed; keys and values are results as well."""
    if node.optional(SHARED) is not None or node.optional(BEAMS) is not None:
        raise node.unsupported("overwritten past buffers and beams are not supported")
    if node.wants(3):
        raise node.unsupported("attention weights as a result (qk) are not supported")
    query, key, value = _given(node)
    past: Size = 0
    if (before := node.optional(PAST_KEY)) is not None:
        for position in (PAST_KEY, PAST_VALUE):
            node.check_rank(position, (4,), "earlier keys and values are [batch, heads, length, elements]")
        past = sizes_of(before)[2]
        key = node.emit(ConcatOp, [before, key], axis=2)
        value = node.emit(ConcatOp, [node.input(PAST_VALUE), value], axis=2)
    return _attended(node, (query, key, value), past, KEY_MASK, SCORES), key, value


def _given(node: Node) -> Heads:
    """Queries, keys and values from separate or packed operands, plus their part of the bias."""
    node.check_rank(0, (3, PACKED), "queries are [batch, length, elements] or [batch, length, heads, 3, elements]")
    node.check_rank(OFFSET, (1,), "the bias has a number for each element of queries, keys and values")
    if node.rank() == PACKED:
        _check_packed(node, 0, 3)
        query, key, value = (_part(node, 0, number) for number in range(3))
        widths = [width_of(part) for part in (query, key, value)]
        head_count(node, *widths)
        return biased(node, query, 0, widths), biased(node, key, 1, widths), biased(node, value, 2, widths)
    heads = head_count(node, size_along(node.input(), 2))
    query = split_heads(node, node.input(), heads)
    node.check_rank(KEY, (3, 4, PACKED), "keys are [batch, length, elements] or heads, maybe with the values")
    if node.rank(KEY) == PACKED:
        _check_packed(node, KEY, 2)
        key, value = (_part(node, KEY, number) for number in range(2))
    else:
        node.check_rank(VALUE, (node.rank(KEY),), "values have the axes of keys")
        key, value = (_heads(node, position, heads) for position in (KEY, VALUE))
    widths = [width_of(part) for part in (query, key, value)]
    query = biased(node, query, 0, widths)
    if node.rank(KEY) == 4:
        # Cached keys and values of another sequence already include the bias.
        return query, key, value
    return query, biased(node, key, 1, widths), biased(node, value, 2, widths)


def _check_packed(node: Node, position: int, count: int) -> None:
    """Raise `ModelError` unless an operand packs `count` values."""
    if node.sizes(position)[3] != count:
        reason = f"operand {position} of {node.kind} has the shape {node.sizes(position)}"
        raise ModelError(reason, node=node.name, hint=f"it is [batch, length, heads, {count}, elements]")


def _part(node: Node, position: int, number: int) -> SSAValue:
    """One of the values of a packed operand [batch, length, heads, count, elements], as heads."""
    part = part_of(node, node.input(position), number, 3)
    return node.emit(TransposeOp, part, permutation=(0, 2, 1, 3))


def _heads(node: Node, position: int, heads: int) -> SSAValue:
    """Keys or values as heads."""
    if node.rank(position) == 4:
        return node.input(position)
    head_count(node, size_along(node.input(position), 2))
    return split_heads(node, node.input(position), heads)


def width_of(heads: SSAValue) -> int:
    """The total number of elements of all heads."""
    return size_along(heads, 1) * size_along(heads, 3)


def biased(node: Node, heads: SSAValue, part: int, widths: Sequence[int], position: int = OFFSET) -> SSAValue:
    """Queries, keys or values plus their part of the bias, the optional operand at `position`."""
    bias = node.optional(position)
    if bias is None:
        return heads
    if sizes_of(bias) != (sum(widths),):
        reason = f"{node.kind}: a bias of {sizes_of(bias)} does not fit {list(widths)} elements"
        raise ModelError(reason, node=node.name, hint="it has a number for each element of queries, keys and values")
    start = sum(widths[:part])
    own = cut(node, bias, {0: (start, start + widths[part])})
    shape = (size_along(heads, 1), 1, size_along(heads, 3))
    return node.emit(AddOp, heads, node.emit(ReshapeOp, own, shape=shape))

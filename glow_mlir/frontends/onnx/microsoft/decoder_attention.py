"""onnxruntime's DecoderMaskedMultiHeadAttention: one query, whose past may be a buffer shared by several beams."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, LessOp, LessOrEqualOp, WhereOp
from glow_mlir.dialects.glow_high.indexing import GatherNDOp
from glow_mlir.dialects.shapes import has_one_element, size_along, sizes_of
from glow_mlir.dialects.sizes import smallest
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.attention import merged_heads, split_heads
from glow_mlir.frontends.builder.slices import cut, iota
from glow_mlir.frontends.onnx.microsoft.attention import Heads, biased, head_count, width_of
from glow_mlir.frontends.onnx.microsoft.cache import Lengths, indices_of, kept
from glow_mlir.frontends.onnx.microsoft.key_masks import added, key_mask
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size

KEY, VALUE, MASK, ADDEND, PAST_KEY, PAST_VALUE, PAST_LENGTH, WIDTH, BEAMS, OFFSET = range(1, 11)
"""Positions of the operands after the queries."""

_AXES = {
    0: ((3,), "the query is [batch, 1, elements]"),
    KEY: ((3, 4), "keys are [batch, 1, elements], or [batch, heads, length, elements] of another sequence"),
    VALUE: ((3, 4), "values have the axes of keys"),
    MASK: ((2,), "the mask is [batch, keys]"),
    ADDEND: ((4,), "the score bias is [batch, heads, 1, keys]"),
    PAST_KEY: ((4,), "earlier keys are [batch, heads, length, elements]"),
    PAST_VALUE: ((4,), "earlier values are [batch, heads, length, elements]"),
    BEAMS: ((3,), "beams are [batch, beams, length]"),
    OFFSET: ((1,), "the bias has a number for each element of queries, keys and values"),
}
"""Position → the operand's valid ranks, and a description of its axes."""


@onnx_operator("DecoderMaskedMultiHeadAttention", domain=ONNXRUNTIME)
def decoder_masked_multi_head_attention(node: Node) -> Sequence[SSAValue | None]:
    """Attention of one query; for self-attention, keys and values are results as well."""
    for position, (ranks, hint) in _AXES.items():
        node.check_rank(position, ranks, hint)
    if node.wants(3):
        raise node.unsupported("attention weights as a result (qk) are not supported")
    query, key, value = _parts(node)
    if node.optional(KEY) is not None and node.rank(KEY) == 4:
        return (_attended(node, (query, key, value), sizes_of(key)[2], None),)
    if not node.flag("past_present_share_buffer"):
        if node.optional(PAST_KEY) is not None:
            key, value = (
                node.emit(ConcatOp, [node.input(position), new], axis=2)
                for position, new in ((PAST_KEY, key), (PAST_VALUE, value))
            )
        return _attended(node, (query, key, value), sizes_of(key)[2], None), key, value
    return _in_buffer(node, (query, key, value))


def _parts(node: Node) -> Heads:
    """The query, key and value, from separate operands or a packed one."""
    if node.optional(KEY) is None:
        width = size_along(node.input(), 2)
        heads = head_count(node, width // 3)
        if width % 3:
            raise ModelError(f"{node.kind}: {width} elements cannot be split into query, key and value", node=node.name)
        bounds = [(part * (width // 3), (part + 1) * (width // 3)) for part in range(3)]
        parts = [split_heads(node, cut(node, node.input(), {2: bound}), heads) for bound in bounds]
    else:
        node.check_rank(VALUE, (node.rank(KEY),), "values have the axes of keys")
        heads = head_count(node, *(size_along(node.input(p), 2) for p in (0, KEY, VALUE) if node.rank(p) == 3))
        parts = [
            split_heads(node, node.input(p), heads) if node.rank(p) == 3 else node.input(p) for p in (0, KEY, VALUE)
        ]
    widths = [width_of(part) for part in parts]
    is_apart = node.optional(KEY) is not None and node.rank(KEY) == 4
    query, key, value = (
        part if is_apart and number else biased(node, part, number, widths, OFFSET) for number, part in enumerate(parts)
    )
    return query, key, value


def _attended(node: Node, heads: Heads, keys: Size, hidden: SSAValue | None) -> SSAValue:
    """The merged result of attention; `hidden` is added to scores in addition to the node's masks."""
    query = heads[0]
    total = added(node, key_mask(node, MASK, query, keys), node.optional(ADDEND), hidden)
    scale = node.float("scale", 0.0) or 1 / math.sqrt(max(size_along(query, -1), 1))
    return merged_heads(node, node.emit(AttentionOp, *heads, total, scale=scale))


def _in_buffer(node: Node, heads: Heads) -> Sequence[SSAValue]:
    """The result, and buffers of fixed size with the new key and value inserted at the past's length."""
    query, key, value = heads
    if not has_one_element(node.input(PAST_LENGTH)):
        raise ModelError(f"{node.kind}: the past has {node.sizes(PAST_LENGTH)} lengths", node=node.name)
    batch, capacity = sizes_of(query)[0], node.sizes(PAST_KEY)[2]
    index = node.emit(ReshapeOp, node.cast(node.input(PAST_LENGTH), i64), shape=(1, 1))
    positions = node.emit(ExpandOp, index, shape=(batch, 1))
    ends = node.emit(AddOp, positions, node.constant(np.array(1, np.int64)))
    lengths = Lengths(ends, positions, capacity, False, positions)
    new = ((PAST_KEY, key, 1), (PAST_VALUE, value, 2))
    present = [kept(node, node.input(position), rows, lengths, result) for position, rows, result in new]
    keys = capacity if node.optional(MASK) is None else node.sizes(MASK)[1]
    if node.optional(ADDEND) is not None:
        keys = node.sizes(ADDEND)[3]
    tables = [cut(node, table, {2: (0, keys)}) for table in present]
    if node.optional(BEAMS) is not None:
        tables = [_of_beams(node, table, keys, index) for table in tables]
    is_key = node.emit(LessOrEqualOp, node.emit(ReshapeOp, iota(node, keys), shape=(1, 1, 1, keys)), index)
    rows = node.emit(ReshapeOp, is_key, shape=(1, 1, keys, 1))
    # Rows after the last key may contain NaN.
    tables = [node.emit(WhereOp, rows, table, node.splat(0.0, table)) for table in tables]
    hidden = node.emit(WhereOp, is_key, node.splat(0.0, query), node.splat(-math.inf, query))
    return _attended(node, (query, tables[0], tables[1]), keys, hidden), *present


def _of_beams(node: Node, table: SSAValue, keys: Size, index: SSAValue) -> SSAValue:
    """A table [batch · beams, heads, keys, elements] in which each key except the new one is taken from its beam."""
    (batch, heads, _, _), beams = sizes_of(table), size_along(node.input(BEAMS), 1)
    groups = node.sizes(BEAMS)[0]
    if groups * beams != batch or not isinstance(keys, int) or smallest(node.sizes(BEAMS)[2]) < keys:
        hint = "there is a beam for each key of each sequence"
        raise ModelError(f"{node.kind}: beams {node.sizes(BEAMS)} of {batch} sequences", node=node.name, hint=hint)
    own = node.emit(ReshapeOp, iota(node, batch), shape=(batch, 1))
    first = node.emit(ReshapeOp, iota(node, groups, beams), shape=(groups, 1, 1))
    chosen = node.emit(AddOp, node.cast(cut(node, node.input(BEAMS), {2: (0, keys)}), i64), first)
    chosen = node.emit(ReshapeOp, chosen, shape=(batch, keys))
    is_past = node.emit(LessOp, node.emit(ReshapeOp, iota(node, keys), shape=(1, keys)), index)
    sequences = node.emit(WhereOp, is_past, chosen, own)
    rows = node.emit(ExpandOp, node.emit(ReshapeOp, iota(node, keys), shape=(1, keys)), shape=(batch, keys))
    return node.emit(GatherNDOp, table, indices_of(node, sequences, heads, rows))

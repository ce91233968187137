"""onnxruntime's GroupQueryAttention, in which the length of each sequence depends on data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    AndOp,
    EqualOp,
    GreaterOp,
    LessOp,
    LessOrEqualOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.normalization import RmsNormalizationOp
from glow_mlir.dialects.shapes import size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.attention import Groups, capped_attention, merged_heads
from glow_mlir.frontends.builder.slices import iota, part_of, scalar
from glow_mlir.frontends.onnx.microsoft.cache import Lengths, Window, ends_in_zeros, kept, known_size, read
from glow_mlir.frontends.onnx.microsoft.key_masks import added
from glow_mlir.frontends.onnx.microsoft.shared_heads import KEY, QUERY, VALUE, Heads, groups_of, parts_of, turned
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size

PAST_KEY, PAST_VALUE, LAST, TOTAL, COSINES, SINES, POSITIONS, ADDEND, SINK = range(3, 12)
KEY_SCALE, VALUE_SCALE, QUERY_NORM, KEY_NORM, VALID = range(12, 17)
"""Positions of the operands after queries, keys and values."""

_AXES = {
    QUERY: ((3,), "queries are [batch, length, elements]"),
    KEY: ((3,), "keys are [batch, length, elements]"),
    VALUE: ((3,), "values are [batch, length, elements]"),
    PAST_KEY: ((4,), "earlier keys are [batch, heads, length, elements]"),
    PAST_VALUE: ((4,), "earlier values are [batch, heads, length, elements]"),
    LAST: ((1,), "there is a number for each sequence"),
    COSINES: ((2,), "tables have a row for each position"),
    SINES: ((2,), "tables have a row for each position"),
    POSITIONS: ((2,), "positions are [batch, length]"),
    ADDEND: ((4,), "the score bias is [batch, heads, queries, keys]"),
    SINK: ((1,), "there is a number for each head"),
    VALID: ((1,), "there is a number for each sequence"),
}
"""Position → the operand's valid ranks, and a description of its axes."""


@onnx_operator("GroupQueryAttention", domain=ONNXRUNTIME)
def group_query_attention(node: Node) -> Sequence[SSAValue | None]:
    """Attention to earlier and new keys, whose number differs between sequences; keys and values are results too."""
    _check(node)
    groups = groups_of(node)
    total = known_size(node, TOTAL, "the number of keys")
    lengths = Lengths.of(node, node.input(LAST), total, node.sizes()[1], node.optional(VALID))
    query, key, value = (
        node.emit(TransposeOp, heads, permutation=(0, 2, 1, 3))
        for heads in _turned(node, parts_of(node, groups), lengths)
    )
    keep = _window if node.flag("sliding_window_cache") else _tables
    keys, values, seen, present = keep(node, lengths, key, value)
    mask = added(node, node.emit(WhereOp, seen, *_shown(node, query)), node.optional(ADDEND))
    assert mask is not None
    result = capped_attention(
        node,
        (groups.split(node, query), groups.apart(node, keys), groups.apart(node, values)),
        groups.split(node, mask),
        node.float("scale", 0.0) or 1 / math.sqrt(max(size_along(query, -1), 1)),
        node.float("softcap", 0.0),
        _sink(node, groups),
    )
    return merged_heads(node, groups.joined(node, result)), *present


def _check(node: Node) -> None:
    """Raise an error if operands have wrong ranks, or the form of the node is not supported."""
    for position, (ranks, hint) in _AXES.items():
        node.check_rank(position, ranks, hint)
    node.input(LAST)
    quantized = [name for name in ("k_quant_type", "v_quant_type") if node.text(name, "NONE") != "NONE"]
    if quantized or node.optional(KEY_SCALE) is not None or node.optional(VALUE_SCALE) is not None:
        raise node.unsupported("quantized earlier keys and values are not supported")
    if node.int("qk_output", 0) or node.wants(3):
        raise node.unsupported("attention weights as a result (qk_output) are not supported")
    for one, other in ((KEY, VALUE), (PAST_KEY, PAST_VALUE), (COSINES, SINES), (QUERY_NORM, KEY_NORM)):
        if (node.optional(one) is None) != (node.optional(other) is None):
            hint = "pass both keys and values, and both cosines and sines, or neither"
            raise ModelError(f"{node.kind} has only one of the operands {one} and {other}", node=node.name, hint=hint)


def _turned(node: Node, heads: Heads, lengths: Lengths) -> Heads:
    """Normalize and rotate queries and keys, if the node requires it."""
    query, key, value = heads
    if (scale := node.optional(QUERY_NORM)) is not None:
        epsilon = node.float("qk_norm_epsilon", 1e-6)
        query = node.emit(RmsNormalizationOp, query, scale, epsilon=node.float("q_norm_epsilon", epsilon))
        key = node.emit(RmsNormalizationOp, key, node.input(KEY_NORM), epsilon=node.float("k_norm_epsilon", epsilon))
    if not node.flag("do_rotary"):
        return query, key, value
    positions = _positions(node, lengths)
    return (*turned(node, (query, key), positions, (COSINES, SINES)), value)


def _positions(node: Node, lengths: Lengths) -> SSAValue:
    """
    The rows of the rotary tables: the operand `POSITIONS`, or else the positions of the new keys.

    In a first call, the operand has only the first position, and the others follow it.
    """
    given = node.optional(POSITIONS)
    if given is None:
        return lengths.positions
    if lengths.is_first is False:
        return given
    length = node.sizes()[1]
    first = node.emit(ReshapeOp, part_of(node, part_of(node, given, 0), 0), shape=(1, 1))
    steps = node.emit(AddOp, first, node.emit(ReshapeOp, iota(node, length), shape=(1, length)))
    if lengths.is_first:
        return steps
    return node.emit(WhereOp, node.emit(EqualOp, scalar(node, lengths.total), scalar(node, length)), steps, given)


Kept = tuple[SSAValue, SSAValue, SSAValue, Sequence[SSAValue]]
"""Keys and values of a call, the mask of keys that each query sees [batch, 1, queries, keys], and the new tables."""


def _tables(node: Node, lengths: Lengths, key: SSAValue, value: SSAValue) -> Kept:
    """Update tables with the capacity for all keys."""
    new = ((PAST_KEY, key, 1), (PAST_VALUE, value, 2))
    present = [kept(node, node.optional(position), rows, lengths, result) for position, rows, result in new]
    count, is_clean = _read(node, lengths, present)
    keys, values = present if is_clean else (read(node, table, count) for table in present)
    positions = node.emit(ReshapeOp, iota(node, count), shape=(1, 1, 1, count))
    batch, _ = sizes_of(lengths.ends)
    if not is_clean and (batch != 1 or node.optional(VALID) is not None):
        # Some sequences may be shorter than the longest.
        is_key = node.emit(LessOp, positions, node.emit(ReshapeOp, lengths.ends, shape=(batch, 1, 1, 1)))
        keys, values = (_without_others(node, table, is_key) for table in (keys, values))
    return keys, values, _seen(node, lengths, positions), present


def _read(node: Node, lengths: Lengths, present: Sequence[SSAValue]) -> tuple[Size, bool]:
    """
    The number of rows of the tables that a call reads, and whether those after the keys of a sequence are 0.

    Whole tables need no copy. A score bias has as many columns as there are keys.
    """
    first, second = (sizes_of(table)[2] for table in present)
    is_whole = first == second and (first == lengths.total or node.optional(ADDEND) is None)
    is_clean = is_whole and all(map(ends_in_zeros, present))
    return (first if is_clean else lengths.total), is_clean


def _window(node: Node, lengths: Lengths, key: SSAValue, value: SSAValue) -> Kept:
    """Update tables that hold the last keys only."""
    past = [node.input(position) for position in (PAST_KEY, PAST_VALUE)]
    capacity, reach = size_along(past[0], 2), node.int("local_window_size", -1)
    if not 0 < reach <= capacity or not node.flag("causal", True):
        hint = "local_window_size is at least 1, and at most the capacity for keys"
        raise ModelError(f"{node.kind}: a window of {reach} does not fit {capacity} keys", node=node.name, hint=hint)
    if node.optional(ADDEND) is not None:
        raise node.unsupported("a score bias with a sliding past is not supported")
    window = Window(capacity, reach, lengths)
    both = [node.emit(ConcatOp, list(pair), axis=2) for pair in zip(past, (key, value), strict=True)]
    positions, is_key = window.seen(node)
    batch, count = sizes_of(positions)
    positions, is_key = (node.emit(ReshapeOp, item, shape=(batch, 1, 1, count)) for item in (positions, is_key))
    seen = node.emit(AndOp, _seen(node, lengths, positions), is_key)
    keys, values = (_without_others(node, table, is_key) for table in both)
    return keys, values, seen, [window.moved(node, table) for table in both]


def _without_others(node: Node, table: SSAValue, is_key: SSAValue) -> SSAValue:
    """Zero the rows of a table that are not keys, because they may contain NaN."""
    batch, _, _, count = sizes_of(is_key)
    rows = node.emit(ReshapeOp, is_key, shape=(batch, 1, count, 1))
    return node.emit(WhereOp, rows, table, node.splat(0.0, table))


def _seen(node: Node, lengths: Lengths, positions: SSAValue) -> SSAValue:
    """The mask of keys at these positions that each query sees."""
    batch, length = sizes_of(lengths.positions)
    own, window = (
        node.emit(ReshapeOp, lengths.positions, shape=(batch, 1, length, 1)),
        node.int("local_window_size", -1),
    )
    if not node.flag("causal", True):
        ends = node.emit(ReshapeOp, lengths.ends, shape=(sizes_of(lengths.ends)[0], 1, 1, 1))
        return node.emit(LessOp, node.emit(AddOp, positions, node.emit(SubOp, own, own)), ends)
    seen = node.emit(LessOrEqualOp, positions, own)
    if window < 0:
        return seen
    before = node.emit(SubOp, own, node.constant(np.array(window, np.int64)))
    return node.emit(AndOp, seen, node.emit(GreaterOp, positions, before))


def _shown(node: Node, query: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The numbers to add to the scores of keys that are seen, and of others."""
    return node.splat(0.0, query), node.splat(-math.inf, query)


def _sink(node: Node, groups: Groups) -> SSAValue | None:
    """The score of an additional key for each head, split into groups."""
    given = node.optional(SINK)
    if given is None:
        return node.splat(0.0, node.element(), (1, 1, 1)) if node.int("smooth_softmax", -1) > 0 else None
    return groups.split(node, node.emit(ReshapeOp, node.cast(given, node.element()), shape=(1, groups.queries, 1, 1)))

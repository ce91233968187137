"""onnxruntime's SparseAttention, in which each head sees blocks of keys given by the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AndOp, DivOp, LessOrEqualOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.attention import Groups, capped_attention, merged_heads
from glow_mlir.frontends.builder.slices import cut, iota
from glow_mlir.frontends.onnx.microsoft.cache import Lengths, kept, known_size, read
from glow_mlir.frontends.onnx.microsoft.shared_heads import KEY, QUERY, VALUE, groups_of, parts_of, turned
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator

PAST_KEY, PAST_VALUE, ROWS, COLUMNS, TOTAL, ENDS, COSINES, SINES = range(3, 11)
"""Positions of the operands after queries, keys and values."""

_AXES = {
    **dict.fromkeys((QUERY, KEY, VALUE), (3, "queries, keys and values are [batch, length, elements]")),
    **dict.fromkeys((PAST_KEY, PAST_VALUE), (4, "earlier keys and values are [batch, heads, length, elements]")),
    **dict.fromkeys((ROWS, COLUMNS), (2, "blocks are [layouts, …]")),
    ENDS: (1, "there is a number for each sequence"),
    **dict.fromkeys((COSINES, SINES), (2, "tables have a row for each position")),
}
"""Position → the operand's rank, and a description of its axes."""


@onnx_operator("SparseAttention", domain=ONNXRUNTIME)
def sparse_attention(node: Node) -> Sequence[SSAValue]:
    """Causal attention to blocks of keys; keys and values are cached in buffers of fixed size."""
    for position, (rank, hint) in _AXES.items():
        node.check_rank(position, (rank,), hint)
    groups = groups_of(node)
    total = known_size(node, TOTAL, "the number of keys")
    ends = node.cast(node.input(ENDS), i64)
    last = node.emit(SubOp, ends, node.constant(np.array(1, np.int64)))
    lengths = Lengths.of(node, last, total, node.sizes()[1], None)
    query, key, value = parts_of(node, groups)
    if node.flag("do_rotary"):
        query, key = turned(node, (query, key), lengths.positions, (COSINES, SINES))
    query, key, value = (node.emit(TransposeOp, part, permutation=(0, 2, 1, 3)) for part in (query, key, value))
    new = ((PAST_KEY, key, 1), (PAST_VALUE, value, 2))
    present = [kept(node, node.input(position), rows, lengths, result) for position, rows, result in new]
    keys, values = (groups.apart(node, read(node, table, total)) for table in present)
    seen = node.emit(WhereOp, _seen(node, lengths, groups), node.splat(0.0, query), node.splat(-math.inf, query))
    scale = node.float("scale", 0.0) or 1 / math.sqrt(max(size_along(query, -1), 1))
    result = capped_attention(node, (groups.split(node, query), keys, values), groups.split(node, seen), scale)
    return merged_heads(node, groups.joined(node, result)), *present


def _seen(node: Node, lengths: Lengths, groups: Groups) -> SSAValue:
    """The mask of keys that each query of each head sees, [batch, heads, queries, keys]."""
    size = node.int("sparse_block_size")
    blocks = _blocks(node, size)
    layouts = len(blocks)
    if groups.queries % layouts:
        hint = "num_heads is a multiple of the layouts"
        raise ModelError(f"{node.kind}: {layouts} layouts do not fit {groups.queries} heads", node=node.name, hint=hint)
    batch, length = sizes_of(lengths.positions)
    total = lengths.total
    columns = node.constant(np.repeat(blocks, size, 2))
    own = node.emit(DivOp, lengths.positions, node.constant(np.array(size, np.int64)))
    rows = cut(node, node.emit(GatherOp, columns, own, axis=1), {3: (0, total)})
    of_heads = node.emit(TransposeOp, rows, permutation=(1, 0, 2, 3))
    apart = node.emit(ReshapeOp, of_heads, shape=(batch, 1, layouts, length, total))
    repeated = node.emit(ExpandOp, apart, shape=(batch, groups.queries // layouts, layouts, length, total))
    allowed = node.emit(ReshapeOp, repeated, shape=(batch, groups.queries, length, total))
    positions = node.emit(ReshapeOp, lengths.positions, shape=(batch, 1, length, 1))
    return node.emit(AndOp, allowed, node.emit(LessOrEqualOp, iota(node, total), positions))


def _blocks(node: Node, size: int) -> np.ndarray:
    """The mask of key blocks that each query block sees, [layouts, blocks, blocks], from lists of columns."""
    starts, columns = node.content(ROWS, "the rows of blocks"), node.content(COLUMNS, "the columns of blocks")
    if any(array.dtype.kind not in "iu" for array in (starts, columns)):
        raise ModelError(f"{node.kind}: rows and columns of blocks must be integers", node=node.name)
    layouts, count = len(starts), starts.shape[1] - 1
    table = np.zeros((layouts, max(count, 0), max(count, 0)), bool)
    for layout, row in np.ndindex(table.shape[:2]):
        first, end = starts[layout, row : row + 2]
        listed = columns[layout, first:end] if layout < len(columns) else columns[:0]
        if first < 0 or end > columns.shape[1] or (listed.size and not 0 <= listed.min() <= listed.max() < count):
            hint = "rows are the offsets of their columns, and columns are indices of blocks"
            raise ModelError(f"{node.kind}: columns {first} to {end} of a row are invalid", node=node.name, hint=hint)
        table[layout, row, listed] = True
    if size < 1 or not table.size or len(columns) != layouts:
        hint = "each layout has columns, and sparse_block_size is at least 1"
        raise ModelError(f"{node.kind}: {layouts} layouts of {count} blocks", node=node.name, hint=hint)
    return table

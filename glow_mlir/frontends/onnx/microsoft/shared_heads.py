"""Heads of onnxruntime's attention in which queries share keys and values: packed operands, and rotary positions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.attention import Groups
from glow_mlir.frontends.builder.rotary import rotated
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.node import Node

QUERY, KEY, VALUE = range(3)
"""Positions of the operands."""

Heads = tuple[SSAValue, SSAValue, SSAValue]
"""Queries, keys and values, each [batch, length, heads, elements] or [batch, heads, length, elements]."""


def groups_of(node: Node) -> Groups:
    """The groups of heads; raises `ModelError` if heads of queries cannot evenly share those of keys."""
    queries, keys = node.int("num_heads"), node.int("kv_num_heads")
    if keys < 1 or queries < 1 or queries % keys:
        hint = "kv_num_heads divides num_heads"
        raise ModelError(f"{node.kind}: {queries} heads cannot share {keys} of keys", node=node.name, hint=hint)
    return Groups(queries, keys)


def parts_of(node: Node, groups: Groups) -> Heads:
    """Queries, keys and values [batch, length, heads, elements], from separate operands or a packed one."""
    counts = (groups.queries, groups.keys, groups.keys)
    if node.optional(KEY) is None:
        depth = size_along(node.input(), 2) // sum(counts)
        ends = np.cumsum([0, *(depth * count for count in counts)]).tolist()
        parts = [cut(node, node.input(), {2: bounds}) for bounds in itertools.pairwise(ends)]
        fits = ends[-1] == size_along(node.input(), 2)
    else:
        parts = [node.input(position) for position in (QUERY, KEY, VALUE)]
        fits = all(size_along(part, 2) % count == 0 for part, count in zip(parts, counts, strict=True))
    if not fits:
        reason = f"{node.kind}: {size_along(node.input(), 2)} elements are not those of heads {list(counts)}"
        raise ModelError(reason, node=node.name, hint="num_heads and kv_num_heads divide the elements")
    query, key, value = (
        node.emit(ReshapeOp, part, shape=(*sizes_of(part)[:2], count, size_along(part, 2) // count))
        for part, count in zip(parts, counts, strict=True)
    )
    return query, key, value


def turned(
    node: Node, parts: Sequence[SSAValue], indices: SSAValue, positions: Sequence[int]
) -> tuple[SSAValue, SSAValue]:
    """Rotate queries and keys by rows `indices` [batch, length] of the tables, the operands at `positions`."""
    tables: list[SSAValue] = []
    for position in positions:
        rows = node.emit(GatherOp, node.input(position), indices, axis=0)
        batch, length, pairs = sizes_of(rows)
        tables.append(node.emit(ReshapeOp, rows, shape=(batch, length, 1, pairs)))
    is_interleaved = node.flag("rotary_interleaved")
    query, key = (rotated(node, part, *tables, is_interleaved=is_interleaved) for part in parts)
    return query, key

"""GroupQueryAttention whose keys and values lie in pages, of rows of several sequences in one call."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.pages import PagedAttentionOp
from glow_mlir.dialects.shapes import size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.pages import Pages
from glow_mlir.frontends.onnx.microsoft.group_query_attention import (
    ADDEND,
    COSINES,
    PAST_KEY,
    PAST_VALUE,
    POSITIONS,
    SINES,
    SINK,
    VALID,
    check_forms,
    normalized,
)
from glow_mlir.frontends.onnx.microsoft.shared_heads import KEY, QUERY, VALUE, groups_of, parts_of, turned
from glow_mlir.frontends.onnx.node import Node

TABLE, SEQUENCES = PAST_KEY, PAST_VALUE
"""Positions of the operands `table` and `sequences`, in place of earlier keys and values."""

_REFUSED: Mapping[int, str] = {
    ADDEND: "a score bias beside pages of keys",
    VALID: "numbers of valid keys beside pages of keys",
}
"""Position → what the operand is, which is not supported."""


class PagedGroupQueryAttention:
    """
    The importer of GroupQueryAttention as attention to pages.

    The queries of a node are [1, rows, elements], its operands `TABLE` and `SEQUENCES` are those of `paged_attention`,
    and `POSITIONS` [rows] are the positions of the rows in their sequences, up to `context`. The pages of the first
    node are the state `keys.0` and `values.0`, and so on.
    """

    def __init__(self, pages: Pages, context: int) -> None:
        self.pages, self.context = pages, context
        self.layers = 0
        """The number of nodes so far."""

    def __call__(self, node: Node) -> SSAValue:
        """Write the keys and values of a node, and attend to all of each row's sequence."""
        check_forms(node, (QUERY, KEY, VALUE, COSINES, SINES, SINK))
        for position, words in _REFUSED.items():
            if node.optional(position) is not None:
                raise node.unsupported(f"{words} is not supported")
        if not node.flag("causal", True):
            raise node.unsupported("attention to later tokens is not supported in a decoder")
        heads = self._heads(node)
        where = [node.input(position) for position in (TABLE, SEQUENCES, POSITIONS)]
        query, key, value = (node.cast(node.emit(ReshapeOp, item, shape=sizes_of(item)[1:]), f32) for item in heads)
        written = (("keys", key), ("values", value))
        (keys, key_scales), (values, value_scales) = (
            self.pages.kept(node, kind, self.layers, rows, where) for kind, rows in written
        )
        self.layers += 1
        scale = node.float("scale", 0.0) or 1 / math.sqrt(max(size_along(query, -1), 1))
        forms = {"scale": scale, "window": max(node.int("local_window_size", -1), 0)}
        sinks, softcap = self._sinks(node, size_along(query, 1)), node.float("softcap", 0.0)
        kept = query, keys, values, *where, sinks, None, key_scales, value_scales
        result = node.emit(PagedAttentionOp, *kept, **forms, softcap=softcap)
        rows, count, width = sizes_of(result)
        return node.cast(node.emit(ReshapeOp, result, shape=(1, rows, count * width)), node.element())

    def _heads(self, node: Node) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Queries, keys and values [1, rows, heads, elements], normalized and rotated if the node requires it."""
        query, key, value = normalized(node, parts_of(node, groups_of(node)))
        if not node.flag("do_rotary"):
            return query, key, value
        count = size_along(node.input(COSINES), 0)
        if count < self.context:
            reason = f"{node.kind}: tables of {count} positions are too short for a context of {self.context}"
            raise ModelError(reason, node=node.name, hint=f"a context of up to {count} is possible")
        (rows,) = sizes_of(node.input(POSITIONS))
        # Padding has negative positions, which count from the back, and any row will do.
        positions = node.emit(ReshapeOp, node.input(POSITIONS), shape=(1, rows))
        return (*turned(node, (query, key), positions, (COSINES, SINES)), value)

    def _sinks(self, node: Node, heads: int) -> SSAValue | None:
        """Further scores without values, one a head, if the node has some."""
        given = node.optional(SINK)
        if given is not None:
            return node.cast(given, f32)
        return node.constant(np.zeros(heads, np.float32)) if node.int("smooth_softmax", -1) > 0 else None

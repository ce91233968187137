"""Key masks of onnxruntime's attention, as numbers to add to scores."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, AndOp, GreaterOp, GreaterOrEqualOp, LessOp, WhereOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.slices import cut, iota
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.support.symbols import Size, Sizes


def key_mask(node: Node, position: int, query: SSAValue, keys: Size) -> SSAValue | None:
    """
    The mask to add to scores of queries [batch, heads, length, elements]: `mask_filter_value` for hidden keys.

    The operand at `position` is [batch, keys] or [batch, length, keys], above 0 for keys that are seen, or a vector of
    the end of each sequence, optionally followed by their starts or other lengths. `None` if it is absent.
    """
    mask = node.optional(position)
    if mask is None:
        return None
    batch, _, queries, _ = sizes_of(query)
    lines: dict[Sizes, Sizes] = {(batch, keys): (batch, 1, 1, keys), (batch, queries, keys): (batch, 1, queries, keys)}
    if (line := lines.get(sizes_of(mask))) is not None:
        seen = node.emit(GreaterOp, node.emit(ReshapeOp, mask, shape=line), node.constant(0, like=mask))
    elif rank_of(mask) == 1:
        seen = _between(node, mask, batch, keys)
    else:
        reason = f"a mask of the shape {sizes_of(mask)} is not supported for {queries} queries and {keys} keys"
        raise node.unsupported(reason)
    shown, hidden = (node.splat(number, query) for number in (0.0, filter_value(node, query)))
    return node.emit(WhereOp, seen, shown, hidden)


def filter_value(node: Node, query: SSAValue) -> float:
    """The number to add to scores of hidden keys, clamped to the range of the queries' element type."""
    least = float(np.finfo(numpy_dtype(element_of(query))).min) if element_of(query).name != "bf16" else -3e38
    return max(node.float("mask_filter_value", -10000.0), least)


def _between(node: Node, bounds: SSAValue, batch: Size, keys: Size) -> SSAValue:
    """The mask of each sequence's keys: those before its end and, if given, from its start on."""
    (count,) = sizes_of(bounds)
    if count not in (batch, 2 * batch, 3 * batch + 2):
        raise node.unsupported(f"a mask of the shape {sizes_of(bounds)} is not supported for {batch} sequences")
    positions = iota(node, keys, dtype=numpy_dtype(element_of(bounds)))
    ends = node.emit(ReshapeOp, cut(node, bounds, {0: (0, batch)}), shape=(batch, 1, 1, 1))
    seen = node.emit(LessOp, positions, ends)
    if count != 2 * batch:
        return seen
    begins = node.emit(ReshapeOp, cut(node, bounds, {0: (batch, 2 * batch)}), shape=(batch, 1, 1, 1))
    return node.emit(AndOp, seen, node.emit(GreaterOrEqualOp, positions, begins))


def added(node: Node, *masks: SSAValue | None) -> SSAValue | None:
    """The sum of the masks that are present."""
    present = [mask for mask in masks if mask is not None]
    if not present:
        return None
    total, *others = present
    for other in others:
        total = node.emit(AddOp, total, other)
    return total

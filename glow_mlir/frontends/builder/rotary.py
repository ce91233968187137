"""Rotary position embedding: rotate pairs of elements of heads by angles that grow with position (Su et al. 2021)."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, SubOp
from glow_mlir.dialects.shapes import rank_of, size_along, sizes_of
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.slices import cut, part_of


def rotated(
    node: NodeBuilder, value: SSAValue, cosines: SSAValue, sines: SSAValue, is_interleaved: bool = False
) -> SSAValue:
    """
    Rotate the first elements along the last axis, a pair for each cosine; cosines and sines broadcast to the value.

    If `is_interleaved`, the elements of a pair are adjacent; otherwise all first elements come before the second ones.
    """
    last, half = rank_of(value) - 1, size_along(cosines, -1)
    turning = cut(node, value, {last: (0, 2 * half)})
    if is_interleaved:
        pairs = node.emit(ReshapeOp, turning, shape=(*sizes_of(turning)[:-1], half, 2))
        first, second = (part_of(node, pairs, number, last + 1) for number in (0, 1))
    else:
        first, second = (cut(node, turning, {last: bounds}) for bounds in ((0, half), (half, 2 * half)))
    turned = [
        node.emit(SubOp, node.emit(MulOp, first, cosines), node.emit(MulOp, second, sines)),
        node.emit(AddOp, node.emit(MulOp, second, cosines), node.emit(MulOp, first, sines)),
    ]
    if is_interleaved:
        apart = [node.emit(ReshapeOp, part, shape=(*sizes_of(part), 1)) for part in turned]
        turned = [node.emit(ReshapeOp, node.emit(ConcatOp, apart, axis=last + 1), shape=sizes_of(turning))]
    rest = cut(node, value, {last: (2 * half, size_along(value, -1))})
    parts = [*turned, *([rest] if size_along(rest, -1) else [])]
    return parts[0] if len(parts) == 1 else node.emit(ConcatOp, parts, axis=last)

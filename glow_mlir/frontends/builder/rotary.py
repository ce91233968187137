"""Rotary position embedding: rotate pairs of elements of heads by angles that grow with position (Su et al. 2021)."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.shapes import rank_of, size_along, sizes_of
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.slices import cut


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
        turned = [_rotated_neighbours(node, turning, cosines, sines)]
    else:
        first, second = (cut(node, turning, {last: bounds}) for bounds in ((0, half), (half, 2 * half)))
        turned = [
            node.emit(SubOp, node.emit(MulOp, first, cosines), node.emit(MulOp, second, sines)),
            node.emit(AddOp, node.emit(MulOp, second, cosines), node.emit(MulOp, first, sines)),
        ]
    rest = cut(node, value, {last: (2 * half, size_along(value, -1))})
    parts = [*turned, *([rest] if size_along(rest, -1) else [])]
    return parts[0] if len(parts) == 1 else node.emit(ConcatOp, parts, axis=last)


def _rotated_neighbours(node: NodeBuilder, value: SSAValue, cosines: SSAValue, sines: SSAValue) -> SSAValue:
    """Rotate pairs of adjacent elements: the value by cosines, and the value with pairs exchanged by sines."""

    def paired(first: SSAValue, second: SSAValue) -> SSAValue:
        sizes = sizes_of(first)
        apart = [node.emit(ReshapeOp, part, shape=(*sizes, 1)) for part in (first, second)]
        both = node.emit(ConcatOp, apart, axis=len(sizes))
        return node.emit(ReshapeOp, both, shape=(*sizes[:-1], 2 * size_along(first, -1)))

    *outer, elements = sizes_of(value)
    pairs = node.emit(ReshapeOp, value, shape=(*outer, elements // 2, 2))
    rank = len(outer) + 2
    exchanged = node.emit(
        SliceOp,
        pairs,
        starts=(*(0,) * (rank - 1), 1),
        ends=(*sizes_of(pairs)[:-1], -1),
        steps=(*(1,) * (rank - 1), -1),
    )
    exchanged = node.emit(ReshapeOp, exchanged, shape=sizes_of(value))
    kept = node.emit(MulOp, value, paired(cosines, cosines))
    return node.emit(AddOp, kept, node.emit(MulOp, exchanged, paired(node.emit(NegOp, sines), sines)))

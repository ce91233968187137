"""ONNX's operators whose result sizes depend on the values of operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.selection import NonMaxSuppressionOp, NonZeroOp, UniqueOp
from glow_mlir.dialects.shapes import largest_shape, normalize_axis, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import product_of


def flat(node: Node, value: SSAValue) -> SSAValue:
    """Flatten a value to one axis."""
    return node.emit(ReshapeOp, value, shape=(product_of(sizes_of(value)),))


def positions_of(node: Node, value: SSAValue) -> SSAValue:
    """The positions of all nonzero elements, one per column; the rank of `value` is at least 1."""
    positions, count = node.emit_all(NonZeroOp, value)
    return cut(node, positions, {1: (0, node.bind_symbol(count, shape_of(positions)[1]))})


@onnx_operator("NonZero")
def non_zero(node: Node) -> SSAValue:
    """The positions of all nonzero elements, one per column."""
    value = node.input() if node.rank() else flat(node, node.input())
    return node.once(value, lambda: positions_of(node, value))


@onnx_operator("Compress")
def compress(node: Node) -> SSAValue:
    """Select the slices along `axis`, by default the elements, for which a condition holds."""
    value, axis = node.input(), 0
    if node.has("axis"):
        axis = normalize_axis(node.int("axis"), node.rank())
    else:
        value = flat(node, value)
    condition, known = node.input(1), node.known(1)
    chosen = largest_shape(condition)[0] if known is None else max(np.flatnonzero(known), default=-1) + 1
    if chosen > largest_shape(value)[axis]:
        raise ModelError(f"Compress: the condition is longer than axis {axis}", node=node.name)
    positions = node.once(condition, lambda: positions_of(node, condition))
    return node.emit(GatherOp, value, flat(node, positions), axis=axis)


@onnx_operator("Unique")
def unique(node: Node) -> Sequence[SSAValue]:
    """
    The unique elements, or unique slices along `axis`.

    Further results are their first positions, the inverse mapping, and the numbers of occurrences.
    """
    axis = normalize_axis(node.int("axis"), node.rank()) if node.has("axis") else None
    value = flat(node, node.input()) if axis is None else moved_axis(node, node.input(), axis, 0)
    sizes = sizes_of(value)
    rows = node.emit(ReshapeOp, value, shape=(sizes[0], product_of(sizes[1:])))
    found, indices, inverse, occurrences, count = node.emit_all(UniqueOp, rows, sorted=node.flag("sorted", True))
    number = node.bind_symbol(count, largest(sizes[0]))
    found, indices, occurrences = (cut(node, item, {0: (0, number)}) for item in (found, indices, occurrences))
    kept = node.emit(ReshapeOp, found, shape=(number, *sizes[1:]))
    values = kept if axis is None else moved_axis(node, kept, 0, axis)
    return [values, indices, inverse, occurrences]


@onnx_operator("NonMaxSuppression", since=10)
def non_max_suppression(node: Node) -> SSAValue:
    """Indices [batch, class, box] of the selected boxes, the best ones among overlapping boxes."""
    most, limit = node.known(2), largest_shape(node.input())[1]
    if node.optional(2) is None:
        limit = 0
    elif most is not None:
        limit = min(limit, max(0, int(most.item())))
    operands = [node.optional(position) for position in range(2, 5)]
    rows, count = node.emit_all(
        NonMaxSuppressionOp,
        *(node.input(0), node.input(1), *operands),
        center_point_box=node.flag("center_point_box"),
        limit=limit,
    )
    return cut(node, rows, {0: (0, node.bind_symbol(count, shape_of(rows)[0]))})

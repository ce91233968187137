"""ONNX's indexing operators that are not plain, including those that compare positions."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    EqualOp,
    GreaterOrEqualOp,
    LessOp,
    LessOrEqualOp,
    ModOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import ScatterElementsOp, ScatterNDOp
from glow_mlir.dialects.shapes import element_of, has_static_shape, normalize_axis, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.agreement import is_of_data
from glow_mlir.frontends.builder.slices import cut, filled, iota, scalar, zero_unless
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator


@onnx_operator("Scatter", since=9)
@onnx_operator("ScatterElements", since=11)
def scatter_elements(node: Node) -> SSAValue:
    """
    Scatter updates along `axis`.

    If an axis has a size that depends on data and may be smaller than that of the indices, it is padded during the
    scatter, and a call for which it is smaller fails.
    """
    value, indices = node.input(0), node.input(1)
    shape, offsets = sizes_of(value), sizes_of(indices)
    axis = normalize_axis(node.int("axis", 0), len(shape))
    for position, (whole, part) in enumerate(zip(shape, offsets)):
        if position != axis and whole != part and largest(part) > smallest(whole) and is_of_data(node, whole):
            count, own = scalar(node, part), scalar(node, whole)
            missing = zero_unless(node, node.emit(LessOp, own, count), f"{part} indices exceed {whole} elements")
            value = filled(node, value, position, max(largest(whole), largest(part)))
            indices = node.emit(AddOp, indices, node.cast(missing, element_of(indices)))
    reduction = node.text("reduction", "none")
    found = node.emit(ScatterElementsOp, value, indices, node.input(2), axis=axis, reduction=reduction)
    return cut(node, found, {position: (0, size) for position, size in enumerate(shape)})


@onnx_operator("OneHot")
def one_hot(node: Node) -> SSAValue:
    """`on` where the position along a new axis equals the index, else `off`; the depth is a constant."""
    given = node.array(1, "the depth")
    if given.size != 1 or not 0 <= given.item() < math.inf:
        hint = "the depth is a single non-negative number"
        what = str(given.item()) if given.size == 1 else f"an array of {given.size} elements"
        raise ModelError(f"OneHot: {what} is not a valid depth", node=node.name, hint=hint)
    depth = int(given.item())
    node.check_size(depth)
    axis = normalize_axis(node.int("axis", -1), node.rank() + 1)
    indices = node.emit(CastOp, node.input(0), to=i64)
    from_back = node.emit(LessOp, indices, node.constant(0, like=indices))
    wrapped = node.emit(AddOp, indices, node.constant(depth, like=indices))
    indices = node.emit(WhereOp, from_back, wrapped, indices)
    indices = node.emit(ReshapeOp, indices, shape=(*node.sizes()[:axis], 1, *node.sizes()[axis:]))
    positions = np.arange(depth, dtype=np.int64).reshape(depth, *(1,) * (node.rank() - axis))
    hot = node.emit(EqualOp, indices, node.constant(positions))
    off, on = (node.emit(ReshapeOp, cut(node, node.input(2), {0: (i, i + 1)}), shape=()) for i in (0, 1))
    return node.emit(WhereOp, hot, on, off)


@onnx_operator("Trilu")
def trilu(node: Node) -> SSAValue:
    """The elements above the `k`-th diagonal (or below it, unless `upper`) and on it, zero elsewhere."""
    if node.rank() < 2:
        raise ModelError(f"Trilu takes matrices, not shape {node.sizes()}", node=node.name)
    upper = node.flag("upper", True)
    if not has_static_shape(node.input()):
        return node.emit(WhereOp, _triangle(node, upper), node.input(), node.constant(0, like=node.input()))
    rows, columns = node.shape()[-2:]
    diagonal = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    k = np.zeros((), np.int64) if node.optional(1) is None else node.known(1)
    if k is None:
        compare = GreaterOrEqualOp if upper else LessOrEqualOp
        kept = node.emit(compare, node.constant(diagonal), node.emit(ReshapeOp, node.input(1), shape=()))
    else:
        kept = node.constant(diagonal >= k.item() if upper else diagonal <= k.item())
    return node.emit(WhereOp, kept, node.input(), node.constant(0, like=node.input()))


def _triangle(node: Node, upper: bool) -> SSAValue:
    """The mask of elements that Trilu keeps, for sizes that are known at run time only."""
    rows, columns = node.sizes()[-2:]
    first = iota(node, rows)
    if node.optional(1) is not None:
        first = node.emit(AddOp, first, node.emit(ReshapeOp, node.input(1), shape=(1,)))
    first = node.emit(ReshapeOp, first, shape=(rows, 1))
    return node.emit(GreaterOrEqualOp if upper else LessOrEqualOp, iota(node, columns), first)


@onnx_operator("TensorScatter")
def tensor_scatter(node: Node) -> SSAValue:
    """Write a sequence of updates into a cache along `axis`, at each batch's own index; `circular` wraps around."""
    shape, length = node.shape(0), node.shape(1)
    axis = normalize_axis(node.int("axis", -2), len(shape))
    zeros = node.constant(np.zeros(shape[0], np.int64))
    start = zeros if node.optional(2) is None else node.input(2)
    start = node.emit(ReshapeOp, start, shape=(shape[0], *(1,) * (len(shape) - 1)))
    steps = np.arange(length[axis], dtype=np.int64).reshape(-1, *(1,) * (len(shape) - 1 - axis))
    offsets = node.emit(AddOp, start, node.constant(steps))
    if node.text("mode", "linear") == "circular":
        offsets = node.emit(ModOp, offsets, node.constant(shape[axis], like=offsets))
    slots = (*length[: axis + 1], 1)
    offsets = node.emit(ReshapeOp, offsets, shape=(shape[0], *(1,) * (axis - 1), length[axis], 1))
    offsets = offsets if shape_of(offsets) == slots else node.emit(ExpandOp, offsets, shape=slots)
    before = np.moveaxis(np.indices(length[: axis + 1], np.int64)[:axis], 0, -1)
    indices = node.emit(ConcatOp, [node.constant(before), offsets], axis=axis + 1)
    return node.emit(ScatterNDOp, node.input(0), indices, node.input(1))

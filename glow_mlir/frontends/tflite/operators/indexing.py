"""Operators that read or write elements at indices that are operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import EqualOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import GatherNDOp, GatherOp, ScatterNDOp
from glow_mlir.dialects.glow_high.reductions import TopKOp
from glow_mlir.dialects.shapes import normalize_axis, shape_of
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator


@tflite_operator("GATHER")
def gather(node: TfliteNode) -> SSAValue:
    """Slices along an axis at indices; leading axes may be those of a batch in both operands."""
    shape, indices = node.shape(0), node.shape(1)
    axis = normalize_axis(node.options.number(0, "i"), len(shape))
    batch = node.options.number(1, "i")
    batch = batch + len(indices) if batch < 0 else batch
    if not 0 <= batch <= min(axis, len(indices)):
        raise node.unsupported(f"has {batch} axes of a batch before axis {axis}")
    if not batch:
        return node.emit(GatherOp, node.input(0), node.input(1), axis=axis)
    between, count = axis - batch, len(indices) - batch
    order = [*range(batch), axis, *(other for other in range(batch, len(shape)) if other != axis)]
    value = node.emit(TransposeOp, node.input(0), permutation=order) if between else node.input(0)
    rows = node.emit(ReshapeOp, node.input(1), shape=(*indices, 1))
    found = node.emit(GatherNDOp, value, rows, batch_dims=batch)
    middle = range(batch + count, batch + count + between)
    order = [
        *range(batch),
        *middle,
        *range(batch, batch + count),
        *range(batch + count + between, len(shape_of(found))),
    ]
    return node.emit(TransposeOp, found, permutation=order) if between else found


@tflite_operator("GATHER_ND")
def gather_nd(node: TfliteNode) -> SSAValue:
    """Slices at rows of indices."""
    return node.emit(GatherNDOp, node.input(0), node.input(1))


@tflite_operator("EMBEDDING_LOOKUP")
def embedding_lookup(node: TfliteNode) -> SSAValue:
    """The rows of a table, the second operand, at indices."""
    if node.output().dtype != node.tensor(1).dtype:
        raise node.unsupported(f"of {node.output().dtype} from a table of {node.tensor(1).dtype} is not supported")
    return node.emit(GatherOp, node.input(1), node.input(0), axis=0)


@tflite_operator("SCATTER_ND")
def scatter_nd(node: TfliteNode) -> SSAValue:
    """Zeros, to which updates are added at rows of indices."""
    shape = node.output().shape
    if node.output().dtype == "bool":
        raise node.unsupported("of truth values is not supported")
    zeros = node.splat(0, node.input(1), shape)
    return node.emit(ScatterNDOp, zeros, node.input(0), node.input(1), reduction="add")


@tflite_operator("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(node: TfliteNode) -> SSAValue:
    """The first operand with the second written over it from the indices on that are the third one, limited to fit."""
    rank = len(node.shape(0))
    if len(node.shape(1)) != rank or node.shape(2) != (rank,):
        raise node.unsupported(f"an update of {list(node.shape(1))} at {list(node.shape(2))} does not fit")
    starts = [node.emit(SliceOp, node.input(2), starts=[axis], ends=[axis + 1]) for axis in range(rank)]
    return _updated(node, node.input(0), node.input(1), starts, 0)


def _updated(node: TfliteNode, value: SSAValue, update: SSAValue, starts: Sequence[SSAValue], axis: int) -> SSAValue:
    """A value with an update from these starts on, along this axis and those behind it."""
    sizes, new = shape_of(value), shape_of(update)
    others = [other for other in range(axis, len(sizes)) if sizes[other] != new[other]]
    if not others:
        return update
    first = others[0]
    if len(others) > 1:
        part = node.emit(DynamicSliceOp, value, starts[first], axis=first, size=new[first])
        update = _updated(node, part, update, starts, first + 1)
    return node.emit(DynamicUpdateSliceOp, value, update, starts[first], axis=first)


@tflite_operator("ONE_HOT")
def one_hot(node: TfliteNode) -> SSAValue:
    """A new axis with one value at the index and another one elsewhere."""
    shape, depth = node.shape(0), node.whole(1, "the depth")
    node.check_size(*shape, depth)
    axis = normalize_axis(node.options.number(0, "i"), len(shape) + 1)
    count = len(shape) - axis
    numbers = np.arange(depth).astype(node.tensor(0).dtype).reshape(depth, *[1] * count)
    indices = node.emit(ReshapeOp, node.input(0), shape=(*shape[:axis], 1, *shape[axis:]))
    is_hot = node.emit(EqualOp, indices, node.constant(numbers, f"{node.name}.numbers"))
    on, off = (node.emit(ReshapeOp, node.input(position), shape=()) for position in (2, 3))
    return node.emit(WhereOp, is_hot, on, off)


@tflite_operator("TOPK_V2")
def top_k(node: TfliteNode) -> Sequence[SSAValue]:
    """The largest elements of rows, in order, and their indices."""
    count = node.whole(1, "the number of elements")
    values, indices = node.emit_all(TopKOp, node.input(0), k=count, axis=-1)
    return values, node.emit(CastOp, indices, to=i32)

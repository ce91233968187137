"""The gradient of regions of images: weight matrices propagate the cotangents of cells to rows and columns."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    AndOp,
    ClipOp,
    DivOp,
    EqualOp,
    GreaterOrEqualOp,
    LessOrEqualOp,
    MaxOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, CastOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp
from glow_mlir.dialects.glow_high.sampling import RoiAlignOp
from glow_mlir.dialects.properties import flag, integer, ints, number, text
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import gradient


@gradient(RoiAlignOp)
def roi_align(op: RoiAlignOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    With respect to the image only: as in PyTorch, regions are not learned.

    Raises `UnsupportedError` for the mode `max`, and if each region has its own number of samples.
    """
    if text(op.mode) != "avg" or not integer(op.sampling_ratio):
        hint = "take the mode 'avg' and a sampling_ratio above 0"
        raise UnsupportedError("these regions have no gradient", node=location_name(op.location), hint=hint)
    return {"input": lambda: _by_image(op, cotangent, emit)}


def _by_image(op: RoiAlignOp, cotangent: SSAValue, emit: Emitter) -> SSAValue:
    """First along rows for each region, then along columns, summing the regions of an image."""
    batch, height, width, channels = shape_of(op.input)
    regions, (rows, columns) = shape_of(op.rois)[0], ints(op.output_shape)
    cells = emit(ReshapeOp, cotangent, shape=(regions, rows, columns * channels))
    spread = emit(MatMulOp, _weights(op, 1, rows, height, emit), cells, transpose_left=True)
    split = emit(ReshapeOp, spread, shape=(regions, height, columns, channels))
    right = emit(TransposeOp, split, permutation=(0, 2, 1, 3))
    right = emit(ReshapeOp, right, shape=(regions * columns, height * channels))
    along = emit(ReshapeOp, _weights(op, 0, columns, width, emit), shape=(regions, columns, 1, width))
    left = emit(MulOp, along, _images(op, batch, emit))
    left = emit(ReshapeOp, left, shape=(regions * columns, batch * width))
    found = emit(ReshapeOp, emit(MatMulOp, left, right, transpose_left=True), shape=(batch, width, height, channels))
    return emit(TransposeOp, found, permutation=(0, 2, 1, 3))


def _images(op: RoiAlignOp, batch: int, emit: Emitter) -> SSAValue:
    """[regions, 1, images, 1]: 1 for the image of each region, otherwise 0."""
    indices = emit(ReshapeOp, op.batch_indices, shape=(*shape_of(op.batch_indices), 1, 1, 1))
    if element_of(indices) != i64:
        indices = emit(CastOp, indices, to=i64)
    numbers = emit.constant(np.arange(batch, dtype=np.int64).reshape(-1, 1), "images")
    return emit(CastOp, emit(EqualOp, indices, numbers), to=element_of(op.input))


def _weights(op: RoiAlignOp, first: int, cells: int, size: int, emit: Emitter) -> SSAValue:
    """
    [regions, cells, elements]: the weight of each element along an axis for a cell.

    `first` is the index, in a region, of its start along the axis; its end is two later. A sample between two elements
    counts for both, by 1 minus its distance.
    """
    dtype, samples = numpy_dtype(element_of(op.rois)), integer(op.sampling_ratio)
    half = flag(op.half_pixel)

    def corner(position: int) -> SSAValue:
        part = emit(SliceOp, op.rois, starts=(0, position), ends=(shape_of(op.rois)[0], position + 1))
        scaled = emit(MulOp, part, emit.splat(number(op.spatial_scale), part))
        moved = emit(SubOp, scaled, emit.splat(0.5, scaled)) if half else scaled
        return emit(ReshapeOp, moved, shape=(shape_of(op.rois)[0], 1, 1, 1))

    start = corner(first)
    length = emit(SubOp, corner(first + 2), start)
    length = length if half else emit(MaxOp, length, emit.splat(1, length))
    step = emit(DivOp, length, emit.splat(cells, length))
    within = np.arange(cells)[:, None] + (np.arange(samples) + 0.5) / samples
    positions = emit(AddOp, start, emit(MulOp, step, emit.constant(within[..., None].astype(dtype), "samples")))
    limits = emit.splat(-1, positions), emit.splat(size, positions)
    is_inside = emit(AndOp, emit(GreaterOrEqualOp, positions, limits[0]), emit(LessOrEqualOp, positions, limits[1]))
    clipped = emit(ClipOp, positions, emit.splat(0, positions), emit.splat(size - 1, positions))
    elements = emit.constant(np.arange(size, dtype=dtype), "elements")
    distance = emit(AbsOp, emit(SubOp, clipped, elements))
    zero = emit.splat(0, distance)
    weights = emit(MaxOp, emit(SubOp, emit.splat(1, distance), distance), zero)
    return emit(ReduceMeanOp, emit(WhereOp, is_inside, weights, zero), axes=(2,), keepdims=False)

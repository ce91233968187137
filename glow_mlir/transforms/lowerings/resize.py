"""Lowering of resizing to gathers with constant indices, weighted for interpolation."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width, is_float, numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, RoundOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.resize import MIN_INNER, ResizeOp
from glow_mlir.dialects.properties import number, text
from glow_mlir.dialects.shapes import element_of, rank_of, size_along, sizes_of
from glow_mlir.dialects.sizes import RunTimeSizeError, largest
from glow_mlir.interpreter.resize import AxisSampling, samplings
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.support.symbols import product_of

MAX_GATHERS = 4
"""Maximum number of taps for gathers; with more, as antialiasing has, a matrix product is faster."""


@lowering(ResizeOp)
def resize(op: ResizeOp, emit: Emitter) -> SSAValue:
    """Resize one axis after the other; integers are interpolated in f32 and rounded, and narrow floats in f32."""
    value, given = op.input, sizes_of(op.input)
    weighted = text(op.mode) != "nearest"
    element = element_of(value)
    found = list(samplings(op))
    through_floats = weighted and not is_float(element)
    if through_floats or (weighted and len(found) > 1 and byte_width(element) < 4):
        value = emit(CastOp, value, to=f32)
    if symbolic := [given[sampling.axis] for sampling in found if not isinstance(given[sampling.axis], int)]:
        if not through_floats:
            raise RunTimeSizeError(symbolic[0])
        resized = emit(ResizeOp, value, **op.properties)
        return emit(CastOp, emit(RoundOp, resized), to=element)
    is_alone = len(found) == 1 and value is op.input
    for sampling in found:
        is_first = sampling.axis == 0 or largest(product_of(sizes_of(value)[sampling.axis + 1 :])) >= MIN_INNER
        if not weighted:
            value = _gather(emit, value, sampling, 0)
        elif not sampling.outside.any() and not (is_alone and is_first):
            value = _resized(op, emit, value, sampling)
        elif sampling.indices.shape[1] <= MAX_GATHERS:
            value = _weighted_gathers(emit, value, sampling)
        else:
            value = _matrix_product(emit, value, sampling)
        if sampling.outside.any():
            mask = emit.constant(_along_axis(sampling.outside, sampling.axis, value), "outside")
            value = emit(WhereOp, mask, emit.splat(number(op.extrapolation), value), value)
    value = emit(RoundOp, value) if through_floats else value
    return value if element_of(value) == element else emit(CastOp, value, to=element)


def _resized(op: ResizeOp, emit: Emitter, value: SSAValue, sampling: AxisSampling) -> SSAValue:
    """Resize one axis; it goes in front of all others where few elements are behind it."""
    axis, rank = sampling.axis, rank_of(value)
    inner = product_of(sizes_of(value)[axis + 1 :])
    order = tuple(range(rank)) if largest(inner) >= MIN_INNER else (axis, *(i for i in range(rank) if i != axis))
    is_turned = order != tuple(range(rank))
    source = emit(TransposeOp, value, permutation=order) if is_turned else value
    at = order.index(axis)
    shape = tuple(len(sampling.indices) if i == at else size for i, size in enumerate(sizes_of(source)))
    scales, starts, ends = ([fill] * rank for fill in (0.0, 0.0, 1.0))
    scales[at] = 0.0 if op.by_sizes()[axis] else op.ratios()[axis]
    starts[at], ends[at] = op.region(axis)
    named = ("mode", "coordinates", "rounding", "cubic_coefficient", "exclude_outside", "antialias", "extrapolation")
    kept = {name: op.properties[name] for name in named if name in op.properties}
    regions = None if op.roi is None else [*starts, *ends]
    result = emit(ResizeOp, source, shape=shape, scales=scales if any(scales) else None, roi=regions, **kept)
    return emit(TransposeOp, result, permutation=tuple(order.index(i) for i in range(rank))) if is_turned else result


def _along_axis(row: np.ndarray, axis: int, value: SSAValue) -> np.ndarray:
    """Reshape a vector to broadcast along `axis` of `value`."""
    return row.reshape(-1, *(1,) * (rank_of(value) - 1 - axis))


def _gather(emit: Emitter, value: SSAValue, sampling: AxisSampling, tap: int) -> SSAValue:
    indices = np.ascontiguousarray(sampling.indices[:, tap])
    return emit(GatherOp, value, emit.constant(indices, "indices"), axis=sampling.axis)


def _weighted_gathers(emit: Emitter, value: SSAValue, sampling: AxisSampling) -> SSAValue:
    dtype = numpy_dtype(element_of(value))
    terms: list[SSAValue] = []
    for tap in range(sampling.indices.shape[1]):
        weights = _along_axis(sampling.weights[:, tap].astype(dtype), sampling.axis, value)
        terms.append(emit(MulOp, _gather(emit, value, sampling, tap), emit.constant(weights, "weights")))
    total = terms[0]
    for term in terms[1:]:
        total = emit(AddOp, total, term)
    return total


def _matrix_product(emit: Emitter, value: SSAValue, sampling: AxisSampling) -> SSAValue:
    """Move the axis to the end, and multiply by a matrix with the weights of each output as a column."""
    shape, axis = sizes_of(value), sampling.axis
    positions = len(sampling.indices)
    matrix = np.zeros((size_along(value, axis), positions), numpy_dtype(element_of(value)))
    columns = np.broadcast_to(np.arange(positions)[:, None], sampling.indices.shape)
    np.add.at(matrix, (sampling.indices, columns), sampling.weights.astype(matrix.dtype))
    order = (*(i for i in range(len(shape)) if i != axis), axis)
    rest = tuple(shape[i] for i in order[:-1])
    rows = emit(ReshapeOp, emit(TransposeOp, value, permutation=order), shape=(product_of(rest), shape[axis]))
    product = emit(MatMulOp, rows, emit.constant(matrix, "weights"))
    product = emit(ReshapeOp, product, shape=(*rest, positions))
    return emit(TransposeOp, product, permutation=tuple(order.index(i) for i in range(len(shape))))

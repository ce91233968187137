"""Gradients of pooling: each window passes its cotangent to the elements that it read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, EqualOp, MulOp, PowOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, SignOp
from glow_mlir.dialects.glow_high.indexing import ScatterElementsOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, Images, LpPoolOp, MaxPoolOp, MaxPoolWithIndicesOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.windows import is_channels_last, join_image, split_sizes
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.differentiation.convolution import transposed_convolution
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.rewriting.taps import Taps
from glow_mlir.support.symbols import product_of

MAX_COMPARED = 9
"""The maximum window size for comparing each element with the maximum."""


def _taps(op: Images) -> Taps:
    return Taps.of(op.window(), op.input, op.result, op.layout)


# ---- means and norms -------------------------------------------------------------------------------------------


@gradient(AvgPoolOp)
def avg_pool(op: AvgPoolOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """Each window passes an equal share to each element that it counts."""

    def contribution() -> SSAValue:
        shares = 1 / _counts(op)
        if shares.min() == shares.max():
            factor = emit.splat(float(shares.min()), cotangent)
        else:
            dtype = numpy_dtype(element_of(cotangent))
            shaped = shares[..., None] if is_channels_last(op.layout) else shares
            factor = emit.constant(shaped.astype(dtype), "shares")
        return handed_back(op, emit(MulOp, cotangent, factor), emit)

    return {"input": contribution}


def _counts(op: AvgPoolOp) -> np.ndarray:
    """The number of elements that each window counts, by position; at least one."""
    window, taps = op.window(), _taps(op)
    along: list[np.ndarray] = []
    for axis, size in enumerate(taps.inputs):
        before, after = window.padding(axis)
        first, last = (-before, size + after) if flag(op.count_include_pad) else (0, size)
        starts = np.arange(taps.outputs[axis]) * window.strides[axis] - before
        reads = starts[:, None] + np.arange(window.kernel[axis]) * window.dilations[axis]
        along.append(((reads >= first) & (reads < last)).sum(axis=1))
    return np.maximum(reduce(np.multiply.outer, along), 1)


def handed_back(op: Images, value: SSAValue, emit: Emitter) -> SSAValue:
    """For each input element, the sum over the windows that contain it: a transposed sum pool."""
    taps = _taps(op)
    if taps.are_apart:
        opened = taps.opened(value, emit)
        shape = list(sizes_of(opened))
        for number, size in enumerate(taps.window.kernel):
            shape[taps.kernel_axis(number)] = size
        return taps.closed(emit(ExpandOp, opened, shape=shape), emit)
    (channels,) = static((split_sizes(value, op.layout)[2],))
    ones = emit.splat(1, value, join_image(channels, taps.window.kernel, 1, op.layout))
    return transposed_convolution(value, ones, taps.window, op.input, channels, op.layout, emit)


@gradient(LpPoolOp)
def lp_pool(op: LpPoolOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """(|x| / y)^(p - 1) with the sign of x; 0 for the windows whose norm is 0."""
    exponent, x, y = integer(op.p), op.input, op.result

    def contribution() -> SSAValue:
        if exponent == 1:
            return emit(MulOp, emit(SignOp, x), handed_back(op, cotangent, emit))
        norm = y if exponent == 2 else emit(PowOp, y, emit.splat(exponent - 1, y))
        zero = emit.splat(0, y)
        weights = emit(WhereOp, emit(EqualOp, y, zero), zero, emit(DivOp, cotangent, norm))
        total = emit(MulOp, x, handed_back(op, weights, emit))
        if exponent == 2:
            return total
        return emit(MulOp, total, emit(PowOp, emit(AbsOp, x), emit.splat(exponent - 2, x)))

    return {"input": contribution}


# ---- the largest elements --------------------------------------------------------------------------------------


@gradient(MaxPoolOp)
def max_pool(op: MaxPoolOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """To the first maximum of each window, found by comparison in small windows, otherwise by index."""

    def contribution() -> SSAValue:
        taps = _taps(op)
        if math.prod(taps.window.kernel) <= MAX_COMPARED:
            return taps.written(list(_to_first_largest(op, taps, cotangent, emit)), emit)
        _, indices = emit.all(MaxPoolWithIndicesOp, op.input, **op.properties)
        return _scattered(op, indices, cotangent, emit)

    return {"input": contribution}


@gradient(MaxPoolWithIndicesOp)
def max_pool_with_indices(
    op: MaxPoolWithIndicesOp, cotangents: tuple[SSAValue | None, SSAValue | None], emit: Emitter
) -> Contributions:
    """To the elements at the indices."""
    cotangent = cotangents[0]
    if cotangent is None:
        return {}

    def contribution() -> SSAValue:
        indices = op.indices
        if flag(op.column_major) or flag(op.by_channel):
            plain = {**op.properties, "column_major": False, "by_channel": False}
            _, indices = emit.all(MaxPoolWithIndicesOp, op.input, **plain)
        return _scattered(op, indices, cotangent, emit)

    return {"input": contribution}


def _to_first_largest(op: Images, taps: Taps, cotangent: SSAValue, emit: Emitter) -> Iterator[SSAValue]:
    """For each tap, the cotangent of the windows in which it is the first maximum, otherwise 0."""
    zero, left = emit.splat(0, cotangent), cotangent
    lowest = emit.splat(-math.inf, op.input)
    for element in taps.read(op.input, emit, lowest):
        is_largest = emit(EqualOp, element, op.result)
        yield emit(WhereOp, is_largest, left, zero)
        left = emit(WhereOp, is_largest, zero, left)


def _scattered(op: Images, indices: SSAValue, cotangent: SSAValue, emit: Emitter) -> SSAValue:
    """The cotangent added at indices that count the input elements in the order [N, C, spatial…]."""
    batch, spatial, channels = split_sizes(op.input, op.layout)
    shape = (batch, channels, *spatial)
    zeros = emit.splat(0, cotangent, (product_of(shape),))
    count = (product_of(sizes_of(cotangent)),)
    flat = [emit(ReshapeOp, value, shape=count) for value in (indices, cotangent)]
    total = emit(ReshapeOp, emit(ScatterElementsOp, zeros, *flat, axis=0, reduction="add"), shape=shape)
    return (
        emit(TransposeOp, total, permutation=_channels_to_end(rank_of(total))) if is_channels_last(op.layout) else total
    )


def _channels_to_end(rank: int) -> Sequence[int] | Shape:
    return (0, *range(2, rank), 1)

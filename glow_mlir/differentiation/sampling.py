"""Gradients of sampling between the elements of images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width, numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    DivOp,
    EqualOp,
    GreaterOp,
    LessOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    OrOp,
    SubOp,
    WhereOp,
    XorOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, FloorOp, RoundOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.glow_high.sampling import DeformColumnsOp, DeformConvOp, GridSampleOp
from glow_mlir.dialects.properties import flag, integer, text
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.differentiation.contributions import Contributions, converted_like
from glow_mlir.differentiation.lowered import by_lowering
from glow_mlir.differentiation.sampled_image import AxisTap, SampledImage, clipped, element_before, moved, within
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.dataclass import dataclass

CUBIC_COEFFICIENT = -0.75


@gradient(GridSampleOp)
def grid_sample(op: GridSampleOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """For the image, the weights of its elements; for the grid, differences of neighbours, none in mode `nearest`."""
    axes = range(len(sizes_of(op.input)) - 2)

    def sampled() -> SampledImage:
        # The rows of the grid start with the last axis.
        numbers = [_wide(_part(op.grid, -1, len(axes) - 1 - axis, 1, emit), emit) for axis in axes]
        return SampledImage(op.input, numbers, partial(_taps, op), emit)

    def by_grid() -> SSAValue | None:
        if text(op.mode) == "nearest":
            return None
        columns = sampled().by_numbers(cotangent)
        joined = columns[0] if len(columns) == 1 else emit(ConcatOp, columns[::-1], axis=len(axes) + 1)
        return converted_like(joined, op.grid, emit)

    return {"input": lambda: sampled().by_image(cotangent), "grid": by_grid}


def _part(value: SSAValue, axis: int, start: int, count: int, emit: Emitter) -> SSAValue:
    """`count` elements along an axis, counted from the back; the value itself if these are all."""
    starts, ends = [0] * rank_of(value), list(sizes_of(value))
    if start == 0 and ends[axis] == count:
        return value
    starts[axis], ends[axis] = start, start + count
    return emit(SliceOp, value, starts=starts, ends=ends)


def _wide(value: SSAValue, emit: Emitter) -> SSAValue:
    """Numbers in the type that positions are computed in."""
    return emit(CastOp, value, to=f32) if byte_width(element_of(value)) < 4 else value


@gradient(DeformConvOp)
def deform_conv(op: DeformConvOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The gradients of the product of its filter with the sampled elements, and of the samples."""
    return by_lowering(op, cotangent, emit)


@gradient(DeformColumnsOp)
def deform_columns(op: DeformColumnsOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """For image and offsets as grid sampling, for each offset group; for the mask, the elements themselves."""
    of = _DeformedColumns(op, emit)

    def masked(group: int) -> SSAValue:
        g = of.channels(cotangent, group)
        return g if op.mask is None else emit(MulOp, g, of.factors(op.mask, group))

    def by_image() -> SSAValue:
        return of.joined([of.sampled(group).by_image(masked(group)) for group in of.groups], -1)

    def by_offset() -> SSAValue:
        parts: list[SSAValue] = []
        for group in of.groups:
            columns = of.sampled(group).by_numbers(masked(group))
            parts.append(columns[0] if len(columns) == 1 else emit(ConcatOp, columns, axis=-1))
        return converted_like(emit(ReshapeOp, of.joined(parts, -2), shape=sizes_of(op.offset)), op.offset, emit)

    def by_mask() -> SSAValue | None:
        if op.mask is None:
            return None
        parts = [emit(MulOp, of.channels(cotangent, group), of.sampled(group).samples()) for group in of.groups]
        sums = [emit(ReduceSumOp, part, axes=(rank_of(part) - 1,)) for part in parts]
        return converted_like(emit(ReshapeOp, of.joined(sums, -2), shape=sizes_of(op.mask)), op.mask, emit)

    return {"input": by_image, "offset": by_offset, "mask": by_mask}


@dataclass(frozen=True)
class _DeformedColumns:
    """The parts of an operator for each offset group."""

    op: DeformColumnsOp
    emit: Emitter

    @property
    def groups(self) -> range:
        """The numbers of the groups."""
        return range(integer(self.op.offset_group))

    def joined(self, parts: Sequence[SSAValue], axis: int) -> SSAValue:
        """The parts of all groups, concatenated."""
        return parts[0] if len(parts) == 1 else self.emit(ConcatOp, parts, axis=axis)

    def channels(self, value: SSAValue, group: int) -> SSAValue:
        """The channels of a group."""
        (count,) = static(sizes_of(value)[-1:])
        return _part(value, -1, group * count // len(self.groups), count // len(self.groups), self.emit)

    def factors(self, mask: SSAValue, group: int) -> SSAValue:
        """The factors of a group: [N, outputs…, kernel, 1]."""
        elements = self.op.elements(self.op.window())
        part = _part(mask, -1, group * elements, elements, self.emit)
        return self.emit(ReshapeOp, part, shape=(*sizes_of(part), 1))

    def sampled(self, group: int) -> SampledImage:
        """The image of a group, at the sampling positions of its windows."""
        window, emit = self.op.window(), self.emit
        elements, axes = self.op.elements(window), len(window.kernel)
        part = _part(self.op.offset, -1, group * elements * axes, elements * axes, emit)
        outputs = static(sizes_of(part)[1:-1])
        offsets = _wide(emit(ReshapeOp, part, shape=(*sizes_of(part)[:-1], elements, axes)), emit)
        numbers: list[SSAValue] = []
        for axis in range(axes):
            starts = np.arange(outputs[axis]) * window.strides[axis] - window.padding(axis)[0]
            within_kernel = np.indices(window.kernel)[axis].ravel() * window.dilations[axis]
            positions = starts.reshape(-1, *(1,) * (axes - 1 - axis), 1) + within_kernel
            here = emit.constant(positions[..., None].astype(numpy_dtype(element_of(offsets))), "places")
            numbers.append(emit(AddOp, _part(offsets, -1, axis, 1, emit), here))
        return SampledImage(self.channels(self.op.input, group), numbers, _linear_taps, emit)


def _linear_taps(position: SSAValue, size: int, emit: Emitter) -> Sequence[AxisTap]:
    """The two elements around each position; outside elements are zero."""
    before, fraction = element_before(position, size, emit), emit(SubOp, position, emit(FloorOp, position))
    _, weights = _weights("linear", fraction, emit)
    return [within(moved(before, number, emit), weight, size, emit) for number, weight in enumerate(weights)]


# ---- places ----------------------------------------------------------------------------------------------------


def _taps(op: GridSampleOp, numbers: SSAValue, size: int, emit: Emitter) -> Sequence[AxisTap]:
    """The contributing elements along an axis for each number of the grid."""
    position, mode, padding = _positions(op, numbers, size, emit), text(op.mode), text(op.padding)
    before = element_before(position, size, emit)
    fraction = emit(SubOp, position, emit(FloorOp, position))
    first, weights = _weights(mode, fraction, emit)
    found: list[AxisTap] = []
    for number, weight in enumerate(weights):
        index = moved(before, first + number, emit)
        if padding == "zeros":
            found.append(within(index, weight, size, emit))
            continue
        if padding == "reflection":
            index = _reflected_index(index, size, flag(op.align_corners), emit)
        found.append(AxisTap(clipped(index, size, emit), weight))
    return found


def _positions(op: GridSampleOp, numbers: SSAValue, size: int, emit: Emitter) -> SSAValue:
    """The position along an axis for each number of the grid, in elements, within reach of the padding."""
    aligned = flag(op.align_corners)
    length, low, high = (size - 1, 0.0, size - 1.0) if aligned else (size, -0.5, size - 0.5)
    scaled = emit(MulOp, emit(AddOp, numbers, emit.splat(1, numbers)), emit.splat(length / 2, numbers))
    position = scaled if aligned else emit(SubOp, scaled, emit.splat(0.5, scaled))
    if text(op.mode) == "nearest":
        position = emit(RoundOp, position)
    if text(op.padding) == "zeros":
        return position
    below, above = (
        emit(LessOp, position, emit.splat(low, position)),
        emit(GreaterOp, position, emit.splat(high, position)),
    )
    if text(op.padding) == "border":
        instead = emit(MinOp, emit(MaxOp, position, emit.splat(0, position)), emit.splat(size - 1, position))
    else:
        instead = _mirrored(position, below, low, high, emit)
    return emit(WhereOp, emit(OrOp, below, above), instead, position)


def _mirrored(position: SSAValue, below: SSAValue, low: float, high: float, emit: Emitter) -> SSAValue:
    """Reflect positions at both borders, as often as necessary."""
    first, last = emit.splat(low, position), emit.splat(high, position)
    if low == high:
        return first
    length = emit.splat(high - low, position)
    beyond = emit(WhereOp, below, emit(SubOp, first, position), emit(SubOp, position, last))
    times = emit(FloorOp, emit(DivOp, beyond, length))
    rest = emit(SubOp, beyond, emit(MulOp, times, length))
    is_odd = emit(EqualOp, emit(ModOp, times, emit.splat(2, times), fmod=True), emit.splat(1, times))
    return emit(WhereOp, emit(XorOp, below, is_odd), emit(AddOp, first, rest), emit(SubOp, last, rest))


def _reflected_index(index: SSAValue, size: int, aligned: bool, emit: Emitter) -> SSAValue:
    """An outside index reflected to the inside."""
    period = max(2 * (size - 1) if aligned else 2 * size, 1)
    turned = emit(ModOp, index, emit.splat(period, index))
    back = emit(SubOp, emit.splat(period if aligned else period - 1, index), turned)
    return emit(WhereOp, emit(LessOp, turned, emit.splat(size, index)), turned, back)


def _weights(mode: str, fraction: SSAValue, emit: Emitter) -> tuple[int, Sequence[SSAValue]]:
    """The first contributing element, relative to the one before a position, and the weights of all."""
    one = emit.splat(1, fraction)
    if mode == "nearest":
        return 0, [one]
    rest = emit(SubOp, one, fraction)
    if mode == "linear":
        return 0, [rest, fraction]
    a = CUBIC_COEFFICIENT
    near, far = (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)
    distances = ((emit(AddOp, fraction, one), far), (fraction, near), (rest, near), (emit(AddOp, rest, one), far))
    return -1, [_polynomial(distance, coefficients, emit) for distance, coefficients in distances]


def _polynomial(x: SSAValue, coefficients: Sequence[float], emit: Emitter) -> SSAValue:
    """The polynomial with these coefficients, the highest power first."""
    value = emit.splat(coefficients[0], x)
    for coefficient in coefficients[1:]:
        value = emit(AddOp, emit(MulOp, value, x), emit.splat(coefficient, x))
    return value

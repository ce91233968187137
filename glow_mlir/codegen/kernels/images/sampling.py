"""Kernels that sample images between their elements, at points given by operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from glow_mlir.codegen.access import computed, lanes_for, load
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, collapse, linear, nest_steps, vector_nest
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Number, Value
from glow_mlir.codegen.interpolation import (
    Tap,
    TapBlock,
    clamped,
    mirrored,
    size_as,
    store_blended,
    store_by_channels,
    weighted_taps,
    zero_outside,
)
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.sampling import DeformColumnsOp, GridSampleOp
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.properties import flag, integer, text
from glow_mlir.dialects.shapes import Shape, element_of, shape_of, size_along, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.target import Target
from glow_mlir.support.symbols import Sizes


@kernel("grid-sample")
class GridSampleKernel(Kernel[GridSampleOp]):
    """Sampling of a vector of points at a time: elements and weights of all first, then the channels of each."""

    name = "grid-sample"
    AXES = ("places",)
    RUN_TIME_SIZES = True

    def takes_strided_inner(self, op: GridSampleOp, target: Target) -> bool:
        # Single elements are moved one by one in less time than image and result are transposed.
        return text(op.mode) == "nearest"

    def emit(self, call: KernelCall[GridSampleOp]) -> None:
        b, source, grid = call.b, call.one("input"), call.one("grid")
        sizes, (steps, result_steps) = _points(call.op)

        def block(outer: list[Index], i: Index, lanes: int) -> None:
            indices = [*outer, i]
            row = linear(indices, steps)
            axes = len(source.sizes) - 2
            numbers = [_column(b, grid, row, steps[-1], axis, lanes, axes) for axis in reversed(range(axes))]
            along = [_along_axis(call, x, size) for x, size in zip(numbers, source.extents[1:-1], strict=True)]
            taps = TapBlock(b, along, source, source.strides[1:-1])
            first, target = linear(indices[:1], source.strides[:1]), linear(indices, result_steps)
            if source.strides[-1] != 1:
                store_by_channels(call, taps, result_steps[-1], first, target, source.extents[-1])
                return
            with b.loop(0, lanes) as lane:
                store_blended(call, taps, lane, first, lane * result_steps[-1] + target, source.extents[-1])

        vector_nest(b, call.extents(sizes), _width(call.op.grid, call.target), block, call.share("places"), rest=1)

    def cuts(self, op: GridSampleOp, target: Target) -> Mapping[str, int]:
        return {"places": nest_steps(static(_points(op)[0]), _width(op.grid, target))}


def _width(points: SSAValue, target: Target) -> int:
    """Return the number of points that are computed together; `points` is the operand that has them."""
    return lanes_for(target, computed(element_of(points)), (0,))


def _points(op: GridSampleOp) -> tuple[Sizes, list[Shape]]:
    """Return the sizes of images and points, with axes merged where possible, and the steps of grid and result."""
    grid, (result,) = op.grid, op.outputs()
    strides = [strides_of(grid)[:-1], strides_of(result)[:-1]]
    extents, steps = collapse(sizes_of(grid)[1:-1], [stride[1:] for stride in strides])
    return (sizes_of(grid)[0], *extents), [(stride[0], *step) for stride, step in zip(strides, steps, strict=True)]


def _column(b: Builder, operand: Operand, row: Index, step: int, column: int, lanes: int, columns: int) -> Value:
    """Load one column of `lanes` rows with `columns` columns; rows are `step` elements apart."""
    within = operand.strides[-1]
    if lanes > 1 and within == 1 and step == columns and columns & (columns - 1) == 0:
        whole = load(b, operand, row, 1, lanes * columns)
        return b.shuffle(whole, whole, range(column, lanes * columns, columns)) if columns > 1 else whole
    first = load(b, operand, row + column * within, 1, 1)
    if lanes == 1:
        return first
    value = b.splat(first, lanes)
    for lane in range(1, lanes):
        value = b.insert(value, load(b, operand, row + (lane * step + column * within), 1, 1), lane)
    return value


def _along_axis(call: KernelCall[GridSampleOp], number: Value, size: Index) -> Sequence[Tap]:
    """Return the elements along an axis that contribute to points of the grid."""
    b, op = call.b, call.op
    aligned, padding = flag(op.align_corners), text(op.padding)
    last, whole = size_as(b, size - 1, number), size_as(b, size, number)
    x = (number + 1.0) / 2.0 * last if aligned else ((number + 1.0) * whole - 1.0) / 2.0
    if text(op.mode) == "nearest":
        x = b.round_even(x)
    low, high = (0.0, last) if aligned else (-0.5, whole - 0.5)
    if padding == "border":
        limited = b.max(b.min(x, last), 0.0)
        x = b.select((x < low) | (x > high), limited, x)
    elif padding == "reflection":
        x = _reflected(b, x, low, high)

    def tap(index: Value, weight: Value | None) -> Tap:
        if padding == "zeros":
            element, inside = zero_outside(b, index, size)
            return Tap(element, weight, inside)
        return Tap(mirrored(b, index, size, aligned) if padding == "reflection" else clamped(b, index, size), weight)

    return weighted_taps(b, x, size, text(op.mode), computed(call.one("input").element), tap)


def _reflected(b: Builder, x: Value, low: float, high: Number) -> Value:
    """Mirror coordinates at both borders, repeatedly, until they lie between them."""
    length = high - low
    if not isinstance(length, Value) and length == 0:
        return b.splat(b.constant(low, x.info.element), x.lanes)
    if isinstance(length, Value):
        # If the borders coincide, any length will do: results are limited to the only element.
        length = b.max(length, 1.0)
    below, above = x < low, x > high
    beyond = b.select(below, low - x, x - high)
    times = b.truncate(beyond / length)
    rest = beyond - times * length
    is_odd = (times - b.floor(times * 0.5) * 2.0).eq(1.0)
    return b.select(below | above, b.select(below ^ is_odd, low + rest, high - rest), x)


@kernel("deform-columns")
class DeformColumnsKernel(Kernel[DeformColumnsOp]):
    """Sampling of a vector of window elements at a time: offsets and weights of all, then the channels of each."""

    name = "deform-columns"
    AXES = ("places",)
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[DeformColumnsOp]) -> None:
        op = call.op
        b, source, result = call.b, call.one("input"), call.result
        window, groups = op.window(), integer(op.offset_group)
        channels = size_along(source.value, -1) // groups
        axes, elements = len(window.kernel), op.elements(window)

        def block(outer: list[Index], i: Index, lanes: int) -> None:
            image, *outputs, group = outer
            along = _moved_taps(call, outer, i, lanes)
            taps = TapBlock(b, along, source, source.strides[1:-1])
            start = linear([image, group * channels], (source.strides[0], source.strides[-1]))
            target = linear([image, *outputs, group * channels], (*result.strides[: axes + 1], result.strides[-1]))
            with b.loop(0, lanes) as lane:
                into = (lane + i) * result.strides[-2] + target
                store_blended(call, taps, lane, start, into, channels)

        extents = (*result.extents[: axes + 1], groups, elements)
        vector_nest(b, extents, _width(op.offset, call.target), block, call.share("places"), rest=1)

    def cuts(self, op: DeformColumnsOp, target: Target) -> Mapping[str, int]:
        result = shape_of(op.outputs()[0])
        extents = (*result[:-2], integer(op.offset_group), result[-2])
        return {"places": nest_steps(extents, _width(op.offset, target))}


def _moved_taps(call: KernelCall[DeformColumnsOp], outer: Sequence[Index], first: Index, lanes: int) -> list[list[Tap]]:
    """Return the taps along each axis of `lanes` elements of a window, from element `first` on."""
    b, op, source, offset, mask = call.b, call.op, call.one("input"), call.one("offset"), call.maybe("mask")
    window = op.window()
    axes, elements, type_ = len(window.kernel), op.elements(window), computed(offset.element)
    element = outer[-1] * elements + first
    row = linear([*outer[:-1], element * axes], offset.strides)
    along: list[list[Tap]] = []
    for axis, size in enumerate(source.extents[1:-1]):
        steps = np.indices(window.kernel)[axis].reshape(-1) * window.dilations[axis]
        table = b.symbol(call.module.table(steps.astype(np.float64 if type_ == f64 else np.float32)))
        within = table.at(first, type_).load(vector(type_, lanes))
        start = b.cast(b.index(outer[1 + axis]) * window.strides[axis] - window.pads[axis], type_)
        moved = _column(b, offset, row, axes * offset.strides[-1], axis, lanes, axes)

        def tap(index: Value, weight: Value | None, size: Index = size) -> Tap:
            before, inside = zero_outside(b, index, size)
            return Tap(before, weight, inside)

        along.append(weighted_taps(b, within + start + moved, size, "linear", computed(source.element), tap))
    if mask is not None:
        start = linear([*outer[:-1], element], mask.strides)
        factor = _column(b, mask, start, mask.strides[-1], 0, lanes, 1)
        along[0] = [_times(b, tap, b.cast(factor, computed(source.element))) for tap in along[0]]
    return along


def _times(b: Builder, tap: Tap, factor: Value) -> Tap:
    assert tap.weight is not None
    return replace(tap, weight=tap.weight * factor)

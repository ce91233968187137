"""Kernels that sample images between their elements, at places that operands tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir import Operation

from glow_mlir.codegen.access import computed, lanes_for, load
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, collapse, linear, nest_steps, vector_nest
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.interpolation import (
    Tap,
    TapBlock,
    clamped,
    mirrored,
    store_blended,
    weighted_taps,
    zero_outside,
)
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand, kind_of
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.sampling import GridSampleOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.properties import flag, text
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.dialects.target import Target


@kernel("grid-sample")
class GridSampleKernel(Kernel):
    """A vector of places at a time: their elements and weights first, then the channels of each."""

    name = "grid-sample"
    AXES = ("places",)

    def accepts(self, op: Operation) -> bool:
        return kind_of(op) is GridSampleOp

    def emit(self, call: KernelCall) -> None:
        b, source, grid = call.b, call.one("input"), call.one("grid")
        extents, (steps, result_steps) = _places(call.op)

        def block(outer: list[Index], i: Index, lanes: int) -> None:
            place = [*outer, i]
            row = linear(place, steps)
            numbers = [_column(b, grid, row, steps[-1], axis, lanes) for axis in reversed(range(grid.shape[-1]))]
            axes = [_along_axis(call, x, size) for x, size in zip(numbers, source.shape[1:-1], strict=True)]
            taps = TapBlock(b, axes, source, source.strides[1:-1])
            target = linear(place, result_steps)
            with b.loop(0, lanes) as lane:
                into = lane * result_steps[-1] + target
                store_blended(call, taps, lane, linear(place[:1], source.strides[:1]), into)

        vector_nest(b, extents, _width(call.op, call.target), block, call.share("places"), rest=1)

    def cuts(self, op: Instruction, target: Target) -> Mapping[str, int]:
        return {"places": nest_steps(_places(op)[0], _width(op, target))}


def _width(op: Operation, target: Target) -> int:
    """How many places are taken together."""
    return lanes_for(target, computed(element_of(op.operands[2])), (0,))


def _places(op: Instruction) -> tuple[Shape, list[Shape]]:
    """Images and places in each, as few axes, and the steps of grid and result along them."""
    grid, (result,) = getattr(op, "grid"), op.outputs()
    strides = [strides_of(grid)[:-1], strides_of(result)[:-1]]
    extents, steps = collapse(shape_of(grid)[1:-1], [stride[1:] for stride in strides])
    return (shape_of(grid)[0], *extents), [(stride[0], *step) for stride, step in zip(strides, steps, strict=True)]


def _column(b: Builder, grid: Operand, row: Index, step: int, column: int, lanes: int) -> Value:
    """One number of each of `lanes` rows of the grid, which lie `step` apart."""
    columns, within = grid.shape[-1], grid.strides[-1]
    if lanes > 1 and within == 1 and step == columns and columns & (columns - 1) == 0:
        whole = load(b, grid, row, 1, lanes * columns)
        return b.shuffle(whole, whole, range(column, lanes * columns, columns)) if columns > 1 else whole
    first = load(b, grid, row + column * within, 1, 1)
    if lanes == 1:
        return first
    value = b.splat(first, lanes)
    for lane in range(1, lanes):
        value = b.insert(value, load(b, grid, row + (lane * step + column * within), 1, 1), lane)
    return value


def _along_axis(call: KernelCall, number: Value, size: int) -> Sequence[Tap]:
    """The elements along an axis that count for numbers of the grid."""
    b, op = call.b, cast(GridSampleOp, call.op)
    aligned, padding = flag(op.align_corners), text(op.padding)
    x = (number + 1.0) / 2.0 * float(size - 1) if aligned else ((number + 1.0) * float(size) - 1.0) / 2.0
    if text(op.mode) == "nearest":
        x = b.round_even(x)
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if padding == "border":
        limited = b.max(b.min(x, float(size - 1)), 0.0)
        x = b.select((x < low) | (x > high), limited, x)
    elif padding == "reflection":
        x = _reflected(b, x, low, high)

    def tap(index: Value, weight: Value | None) -> Tap:
        if padding == "zeros":
            place, inside = zero_outside(b, index, size)
            return Tap(place, weight, inside)
        return Tap(mirrored(b, index, size, aligned) if padding == "reflection" else clamped(b, index, size), weight)

    return weighted_taps(b, x, size, text(op.mode), computed(call.one("input").element), tap)


def _reflected(b: Builder, x: Value, low: float, high: float) -> Value:
    """Places mirrored at both borders, as often as it takes to come between them."""
    length = high - low
    if length == 0:
        return b.splat(b.constant(low, x.info.element), x.lanes)
    below, above = x < low, x > high
    beyond = b.select(below, low - x, x - high)
    times = b.truncate(beyond / length)
    rest = beyond - times * length
    is_odd = (times - b.floor(times * 0.5) * 2.0).eq(1.0)
    return b.select(below | above, b.select(below ^ is_odd, low + rest, high - rest), x)

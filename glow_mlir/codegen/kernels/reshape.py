"""The kernel of reshapes that move elements: sizes that are known at run time only merge or split."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.builder.nests import Index, linear, nest, unraveled
from glow_mlir.codegen.copies import Box, copy_box
from glow_mlir.codegen.kernels.data_movement import cuts_of_box
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.support.symbols import Size


@kernel("reshape")
class ReshapeKernel(Kernel[ReshapeOp]):
    """
    Copies between buffers that are laid out for their largest shapes, in which rows lie where they would not after it.

    Axes that both shapes begin or end with are those of one copy. In between, the place along the axes of one shape,
    the one with more of them, gives that along the axes of the other.
    """

    name = "reshape"
    AXES = ("lines",)
    RUN_TIME_SIZES = True
    cuts = cuts_of_box

    def emit(self, call: KernelCall[ReshapeOp]) -> None:
        source, result = call.one("input"), call.result
        is_merge = len(source.sizes) >= len(result.sizes)
        fine, coarse = (source, result) if is_merge else (result, source)
        first = _common(fine.sizes, coarse.sizes)
        last = _common(fine.sizes[first:][::-1], coarse.sizes[first:][::-1])
        between, merged = (range(first, len(side.sizes) - last) for side in (fine, coarse))
        # Where there is one axis for several, neighbours along the last of these are neighbours along it.
        rows = between[:-1] if len(between) > 1 and len(merged) == 1 else between
        inner = [axis for axis in range(len(fine.sizes)) if axis not in rows]
        along = [*range(first), *(merged if len(rows) < len(between) else ()), *range(merged.stop, len(coarse.sizes))]

        def copy(place: list[Index]) -> None:
            position: Index = 0
            for axis, index in zip(rows, place, strict=True):
                position = position * fine.extents[axis] + index
            if len(rows) < len(between):
                position = position * fine.extents[between[-1]]
            extents = [coarse.extents[axis] for axis in merged]
            there = [position] if len(merged) == 1 else unraveled(position, extents)
            boxes = _box(fine, inner, rows, place), _box(coarse, along, merged, there)
            into, out_of = reversed(boxes) if is_merge else boxes
            copy_box(call.b, tuple(fine.extents[axis] for axis in inner), into, out_of)

        nest(call.b, tuple(fine.extents[axis] for axis in rows), copy, call.share("lines"))


def _common(one: Sequence[Size], other: Sequence[Size]) -> int:
    """How many sizes both begin with."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _box(operand: Operand, axes: Sequence[int], moved: Sequence[int], place: Sequence[Index]) -> Box:
    """The axes of an operand, from a place along others of them on."""
    strides = operand.strides
    return Box(operand, tuple(strides[axis] for axis in axes), linear(place, [strides[axis] for axis in moved]))

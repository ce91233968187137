"""The kernel of reshapes that move elements, since sizes that are only known at run time merge or split axes."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.builder.nests import Index, linear, nest, unraveled
from glow_mlir.codegen.copies import Box, copy_box
from glow_mlir.codegen.kernels.elements.data_movement import cuts_of_box
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.support.symbols import Size


@kernel("reshape")
class ReshapeKernel(Kernel[ReshapeOp]):
    """
    Copies between buffers that are laid out for their largest shapes, so that rows have to move.

    Leading and trailing axes that both shapes share are axes of the copies. In between, the indices along the axes of
    the shape with more axes determine the indices along the axes of the other.
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
        # If several axes merge into one, neighbours along the last of them are neighbours along the merged axis.
        rows = between[:-1] if len(between) > 1 and len(merged) == 1 else between
        inner = [axis for axis in range(len(fine.sizes)) if axis not in rows]
        along = [*range(first), *(merged if len(rows) < len(between) else ()), *range(merged.stop, len(coarse.sizes))]

        def copy(indices: list[Index]) -> None:
            position: Index = 0
            for axis, index in zip(rows, indices, strict=True):
                position = position * fine.extents[axis] + index
            if len(rows) < len(between):
                position = position * fine.extents[between[-1]]
            extents = [coarse.extents[axis] for axis in merged]
            there = [position] if len(merged) == 1 else unraveled(position, extents)
            boxes = _box(fine, inner, rows, indices), _box(coarse, along, merged, there)
            into, out_of = reversed(boxes) if is_merge else boxes
            copy_box(call.b, tuple(fine.extents[axis] for axis in inner), into, out_of)

        nest(call.b, tuple(fine.extents[axis] for axis in rows), copy, call.share("lines"))


def _common(one: Sequence[Size], other: Sequence[Size]) -> int:
    """Return the number of leading sizes that are equal."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _box(operand: Operand, axes: Sequence[int], moved: Sequence[int], indices: Sequence[Index]) -> Box:
    """Return a box over `axes` of an operand, moved by indices along other axes."""
    strides = operand.strides
    return Box(operand, tuple(strides[axis] for axis in axes), linear(indices, [strides[axis] for axis in moved]))

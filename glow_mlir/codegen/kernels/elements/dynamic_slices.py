"""Kernels of slices whose start is an operand."""

from __future__ import annotations

from glow_mlir.codegen.access import read_index
from glow_mlir.codegen.builder.nests import Index
from glow_mlir.codegen.copies import Box, copy_box
from glow_mlir.codegen.kernels.elements.data_movement import cuts_of_box
from glow_mlir.codegen.kernels.elements.index_checks import as_i64
from glow_mlir.codegen.kernels.elements.indexing import start_from
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high import dynamic_slices as ops
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import normalize_axis


def _part(call: KernelCall, whole: Operand, count: Index, axis: int) -> Box:
    """The box of `count` elements of an operand along an axis, from the clamped start on."""
    b = call.b
    most = as_i64(b, whole.extents[axis] - count)
    first = b.index(b.max(b.min(read_index(b, call.one("start"), 0), most), 0))
    return Box(whole, whole.strides).moved([first], whole.strides[axis : axis + 1])


@kernel("dynamic-slice")
class DynamicSliceKernel(Kernel[ops.DynamicSliceOp]):
    """A copy from the part that begins at the start."""

    name = "dynamic-slice"
    AXES = ("lines",)
    RUN_TIME_SIZES = True
    cuts = cuts_of_box

    def emit(self, call: KernelCall[ops.DynamicSliceOp]) -> None:
        source, result = call.one("input"), call.result
        axis = normalize_axis(integer(call.op.axis), len(result.sizes))
        part = _part(call, source, result.extents[axis], axis)
        copy_box(call.b, result.extents, Box.all_of(result), part, call.share("lines"))


@kernel("dynamic-update-slice")
class DynamicUpdateSliceKernel(Kernel[ops.DynamicUpdateSliceOp]):
    """A copy of the input, unless the result is in its memory, then of the update."""

    name = "dynamic-update-slice"
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[ops.DynamicUpdateSliceOp]) -> None:
        update, result = call.one("update"), call.result
        axis = normalize_axis(integer(call.op.axis), len(result.sizes))
        start_from(call, "input")
        part = _part(call, result, update.extents[axis], axis)
        copy_box(call.b, update.extents, part, Box.all_of(update))

"""Gradients of slices whose start is an operand."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from glow_mlir.dialects.properties import integer, size_of_property
from glow_mlir.dialects.shapes import normalize_axis, sizes_of
from glow_mlir.differentiation.contributions import Contributions, zeros_like
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


@gradient(DynamicSliceOp)
def dynamic_slice(op: DynamicSliceOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The cotangent where the slice was taken, and 0 elsewhere."""

    def input_() -> SSAValue:
        return emit(DynamicUpdateSliceOp, zeros_like(op.input, emit), cotangent, op.start, axis=op.axis)

    return {"input": input_}


@gradient(DynamicUpdateSliceOp)
def dynamic_update_slice(op: DynamicUpdateSliceOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The input gets the cotangent but for what was replaced, and the update the rest."""
    axis = normalize_axis(integer(op.axis), len(sizes_of(op.input)))

    def input_() -> SSAValue:
        return emit(DynamicUpdateSliceOp, cotangent, zeros_like(op.update, emit), op.start, axis=op.axis)

    def update() -> SSAValue:
        count = size_of_property(sizes_of(op.update)[axis])
        return emit(DynamicSliceOp, cotangent, op.start, axis=op.axis, size=count)

    return {"input": input_, "update": update}

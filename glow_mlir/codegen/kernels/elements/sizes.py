"""The kernel that stores sizes that are only known at run time."""

from __future__ import annotations

from glow_mlir.codegen.builder.types import i64
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.properties import sizes


@kernel("shape")
class ShapeKernel(Kernel[ShapeOp]):
    """A store for each size."""

    name = "shape"
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[ShapeOp]) -> None:
        b, result = call.b, call.result
        (step,) = result.strides
        for index, extent in enumerate(call.extents(sizes(call.op.sizes))):
            value = extent if isinstance(extent, int) else b.cast(extent, i64)
            result.pointer.at(index * step, i64).store(value if not isinstance(value, int) else b.constant(value, i64))

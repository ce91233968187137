"""The kernel that stores sizes that are known at run time only."""

from __future__ import annotations

from typing import cast

from xdsl.ir import Operation

from glow_mlir.codegen.builder.types import i64
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, kind_of
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.properties import sizes


@kernel("shape")
class ShapeKernel(Kernel):
    """A store for each size."""

    name = "shape"
    RUN_TIME_SIZES = True

    def accepts(self, op: Operation) -> bool:
        return kind_of(op) is ShapeOp

    def emit(self, call: KernelCall) -> None:
        b, result = call.b, call.result
        (step,) = result.strides
        for place, extent in enumerate(call.extents(sizes(cast(ShapeOp, call.op).sizes))):
            value = extent if isinstance(extent, int) else b.cast(extent, i64)
            result.pointer.at(place * step, i64).store(value if not isinstance(value, int) else b.constant(value, i64))

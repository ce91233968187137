"""Whether a kernel executes an instruction together with its bodies."""

from __future__ import annotations

from xdsl.ir import Operation

from glow_mlir.codegen.scalar_body import can_emit
from glow_mlir.codegen.selection.kernel import Kernel
from glow_mlir.dialects.affine_maps import strides_over
from glow_mlir.dialects.glow_low.body import Body
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.shapes import has_static_shape
from glow_mlir.dialects.sizes import RunTimeSizeError


def executes(kernel: Kernel, op: Operation) -> bool:
    """
    Whether a kernel executes an operator, or an instruction with its bodies.

    It does not if it needs a number in place of a size that is known only at run time.
    """
    if not kernel.is_for(op):
        return False
    if not kernel.RUN_TIME_SIZES and not all(map(has_static_shape, (*op.operands, *op.results))):
        return False
    try:
        return _executes(kernel, op)
    except RunTimeSizeError:
        return False


def _executes(kernel: Kernel, op: Operation) -> bool:
    if isinstance(op, DerivedInstruction) and op.bodies:
        parts = ((op.prologue, kernel.PROLOGUE), (op.epilogue, kernel.EPILOGUE))
        if any(body is not None and not (able and is_even(body)) for body, able in parts):
            return False
    return kernel.accepts(op)


def is_even(body: Body) -> bool:
    """
    Whether the ops of a body can be emitted, and its extra operands have contiguous columns, or one element for all.
    """
    operands = zip((*body.targets, *body.sources), body.maps, strict=True)
    steps = [strides_over(affine, strides_of(value)) for value, affine in operands]
    even = all(not step or step[-1] in (0, 1) for step in steps)
    # An element that columns share would be written once for each.
    written = all(step and step[-1] == 1 for step in steps[: len(body.targets)])
    return even and written and all(can_emit(op) for op in body.block.ops if op.results)

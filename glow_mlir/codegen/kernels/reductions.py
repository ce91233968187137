"""The kernel of running totals."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.types import f64, vector
from glow_mlir.codegen.kernels.folds import combined
from glow_mlir.codegen.lines import Line, Lines, line_steps
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, kind_of
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import is_float, signless
from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import Shape, element_of, normalize_axis, shape_of
from glow_mlir.dialects.target import Target


def is_computed_as_stored(op: Operation) -> bool:
    """Whether memory holds the elements of an instruction in the type that they are computed in."""
    return all(computed(element_of(value)) == signless(element_of(value)) for value in op.operands)


RUNNING: dict[type[Operation], str] = {ops.CumSumOp: "add", ops.CumProdOp: "mul"}
"""Running total → how it folds."""


@kernel("running")
class RunningKernel(Kernel[ops.CumSumOp | ops.CumProdOp]):
    """
    One pass along each line; totals of floats are carried in f64 and rounded where they are stored.

    A machine without f64 carries those of f32 in f32.
    """

    name = "running"
    AXES = ("lines",)
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[ops.CumSumOp | ops.CumProdOp]) -> None:
        op = call.op
        b, source, result = call.b, call.one("input"), call.result
        rank = len(source.sizes)
        axes = (normalize_axis(integer(op.axis), rank),) if rank else ()
        lines = Lines.of(source.extents, axes, [source.strides, result.strides])
        element = computed(source.element)
        fold = combined(RUNNING[kind_of(call.op)], element)
        carrier = f64 if is_float(source.element) and call.target.doubles else element
        last = lines.along[-1] - 1
        exclusive, backwards = flag(op.exclusive), flag(op.reverse)
        width = lanes_for(call.target, carrier, (0,), 2) if lines.across else 1

        def body(line: Line) -> None:
            lanes = line.lanes
            total = b.constant(fold.initial(carrier)[0][0], vector(carrier, lanes))
            with b.loop(0, last + 1, 1, carried=[total]) as loop:
                place = last - loop.index if backwards else loop.index
                into, out_of = (
                    place * steps[-1] + first
                    for steps, first in zip(lines.along_steps[::-1], line.starts[::-1], strict=True)
                )
                x = load(b, source, out_of, lines.innermost(0) if lines.across else 1, lanes)
                following = fold.combine(b, loop.values[0], b.cast(x, carrier))
                store(b, result, into, b.cast(loop.values[0] if exclusive else following, element))
                loop.set(following)

        lines.each(b, width, body, call.share("lines"))

    def cuts(self, op: ops.CumSumOp | ops.CumProdOp, target: Target) -> Mapping[str, int]:
        return {"lines": lines_along_axis(shape_of(op.input), integer(op.axis))}


def lines_along_axis(shape: Shape, axis: int) -> int:
    """How many lines an operand has along an axis, of which a scalar has none."""
    return line_steps(shape, (normalize_axis(axis, len(shape)),) if shape else ())

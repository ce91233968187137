"""Kernels of softmax and of normalization over trailing axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from xdsl.ir import Operation

from glow_mlir.codegen.access import computed
from glow_mlir.codegen.bodies import Sink
from glow_mlir.codegen.builder.nests import Index, numbers
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import broadcast_strides
from glow_mlir.codegen.kernels.reductions import is_computed_as_stored
from glow_mlir.codegen.kernels.side_by_side import each_line, normalization_alone, softmax_alone
from glow_mlir.codegen.lines import Line, Lines, line_steps
from glow_mlir.codegen.math.roots import square_root
from glow_mlir.codegen.math.scalar_math import MATH
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand, kind_of
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import normalize_axis, shape_of, sizes_of
from glow_mlir.dialects.target import Target


def _sum(x: list[Value], y: list[Value]) -> list[Value]:
    return [x[0] + y[0]]


@kernel("softmax")
class SoftmaxKernel(Kernel):
    """
    Three passes over each line: its largest element, exponentials and their sum, division.

    The result holds the exponentials in between, so that an epilogue is for tiles. `log_softmax` stores only in the
    last pass.
    """

    name = "softmax"
    AXES = ("lines",)
    EPILOGUE = True
    RUN_TIME_SIZES = True

    def accepts(self, op: Operation) -> bool:
        if op.regions:
            return kind_of(op) is ops.LogSoftmaxOp and is_computed_as_stored(op)
        return kind_of(op) in (ops.SoftmaxOp, ops.LogSoftmaxOp)

    def emit(self, call: KernelCall) -> None:
        source, result = call.one("input"), call.result
        rank = len(source.sizes)
        axes = (normalize_axis(integer(cast(ops.SoftmaxOp, call.op).axis), rank),) if rank else ()
        sink = Sink.of(call)
        planes = [plane.strides for plane in sink.planes]
        lines = Lines.of(source.extents, axes, [result.strides, source.strides, *planes])
        emit_line = _log_softmax_line if kind_of(call.op) is ops.LogSoftmaxOp else _softmax_line
        alone = softmax_alone(call.target)
        each_line(call, lines, computed(source.element), lambda line: emit_line(call, line, sink), alone)

    def cuts(self, op: Instruction, target: Target) -> Mapping[str, int]:
        shape = shape_of(op.inputs()[0])
        axes = (normalize_axis(integer(cast(ops.SoftmaxOp, op).axis), len(shape)),) if shape else ()
        return {"lines": line_steps(shape, axes)}


def _peak(call: KernelCall, line: Line) -> Value:
    """The largest element of each line that is a number: where one is not, the sum of the exponentials tells."""
    b, source = call.b, call.one("input")

    def step(_: Index, offsets: list[Index], lanes: int, values: list[Value]) -> list[Value]:
        return [b.max(line.load(1, source, offsets, lanes), values[0])]

    initial = [(-math.inf, computed(source.element))]
    (peak,) = line.fold(initial, step, lambda x, y: [b.max(x[0], y[0])])
    return peak


def _softmax_line(call: KernelCall, line: Line, sink: Sink) -> None:
    b, source, result = call.b, call.one("input"), call.result
    peak = _peak(call, line)

    def accumulate(_: Index, offsets: list[Index], lanes: int, values: list[Value]) -> list[Value]:
        power = MATH["exp"](b, line.load(1, source, offsets, lanes) - line.spread(peak, lanes))
        line.store((0,), sink, offsets, power)
        return [values[0] + power]

    (total,) = line.fold([(0.0, computed(source.element))], accumulate, _sum)
    factor = 1.0 / total

    def scale(_: Index, offsets: list[Index], lanes: int) -> None:
        line.store((0,), sink, offsets, line.load(0, result, offsets, lanes) * line.spread(factor, lanes))

    line.each(scale)


def _log_softmax_line(call: KernelCall, line: Line, sink: Sink) -> None:
    b, source = call.b, call.one("input")
    numbers = (0, *range(2, 2 + len(sink.planes)))
    peak = _peak(call, line)

    def accumulate(_: Index, offsets: list[Index], lanes: int, values: list[Value]) -> list[Value]:
        x = line.load(1, source, offsets, lanes)
        return [values[0] + MATH["exp"](b, x - line.spread(peak, lanes))]

    (total,) = line.fold([(0.0, computed(source.element))], accumulate, _sum)
    logarithm = MATH["log"](b, total)

    def subtract(_: Index, offsets: list[Index], lanes: int) -> None:
        x = line.load(1, source, offsets, lanes)
        # Two differences: the sum of both subtrahends would lose the smaller one's digits.
        line.store(numbers, sink, offsets, x - line.spread(peak, lanes) - line.spread(logarithm, lanes))

    line.each(subtract)


@kernel("layer-normalization")
class LayerNormalizationKernel(Kernel):
    """
    Statistics in two passes over each line (the mean, then the squares of differences from it), and a third to store.

    A line that the first pass read is in the cache for the others.
    """

    name = "layer-normalization"
    AXES = ("lines",)
    EPILOGUE = True
    RUN_TIME_SIZES = True

    def accepts(self, op: Operation) -> bool:
        if kind_of(op) not in (ops.LayerNormalizationOp, ops.RmsNormalizationOp):
            return False
        normalized = cast(ops.LayerNormalizationOp, op)
        if op.regions and not is_computed_as_stored(op):
            return False
        return all(isinstance(sizes_of(normalized.input)[axis], int) for axis in normalized.normalized_axes())

    def emit(self, call: KernelCall) -> None:
        op = cast(ops.LayerNormalizationOp, call.op)
        source, sink = call.one("input"), Sink.of(call)
        factors: Sequence[Operand] = (call.one("scale"), *call.many("bias"))
        strides = [broadcast_strides(operand, len(source.sizes)) for operand in factors]
        axes = op.normalized_axes()
        strides += [plane.strides for plane in sink.planes]
        lines = Lines.of(source.extents, axes, [call.result.strides, source.strides, *strides])
        count = math.prod(numbers([source.extents[axis] for axis in axes]))
        centred = kind_of(call.op) is ops.LayerNormalizationOp
        element = computed(source.element)
        alone = normalization_alone(call.target)
        emit_line = partial(_normalize_line, call, sink=sink, factors=factors, count=count, centred=centred)
        each_line(call, lines, element, emit_line, alone)

    def cuts(self, op: Instruction, target: Target) -> Mapping[str, int]:
        axes = cast(ops.LayerNormalizationOp, op).normalized_axes()
        return {"lines": line_steps(shape_of(op.inputs()[0]), axes)}


def _normalize_line(
    call: KernelCall, line: Line, sink: Sink, factors: Sequence[Operand], count: int, centred: bool
) -> None:
    b, source = call.b, call.one("input")
    planes = range(2 + len(factors), 2 + len(factors) + len(sink.planes))
    zero = [(0.0, computed(source.element))]
    share = 1.0 / max(count, 1)

    def add(_: Index, offsets: list[Index], lanes: int, values: list[Value]) -> list[Value]:
        return [values[0] + line.load(1, source, offsets, lanes)]

    mean = line.fold(zero, add, _sum)[0] * share if centred else None

    def centred_element(offsets: list[Index], lanes: int) -> Value:
        x = line.load(1, source, offsets, lanes)
        return x if mean is None else x - line.spread(mean, lanes)

    def add_square(_: Index, offsets: list[Index], lanes: int, values: list[Value]) -> list[Value]:
        difference = centred_element(offsets, lanes)
        return [b.fma(difference, difference, values[0])]

    (squares,) = line.fold(zero, add_square, _sum)
    epsilon = number(cast(ops.LayerNormalizationOp, call.op).epsilon)
    factor = 1.0 / square_root(b, squares * share + float(epsilon))

    def normalize(_: Index, offsets: list[Index], lanes: int) -> None:
        value = centred_element(offsets, lanes) * line.spread(factor, lanes)
        scale, *bias = (line.load(number, operand, offsets, lanes) for number, operand in enumerate(factors, 2))
        line.store((0, *planes), sink, offsets, b.fma(value, scale, bias[0]) if bias else value * scale)

    line.each(normalize)

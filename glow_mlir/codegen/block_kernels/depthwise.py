"""Depthwise convolutions: each thread computes a few channels of a pixel, and its neighbour the next few."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from glow_mlir.codegen.block_kernels.tables import kernel
from glow_mlir.codegen.bodies import Sink
from glow_mlir.codegen.builder.nests import Index, linear, unraveled
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products.conv import DepthwiseConvKernel
from glow_mlir.codegen.kernels.products.convolution_form import ConvolutionForm
from glow_mlir.codegen.kernels.products.packed_operand import PACK, packed_operand, packing_cuts
from glow_mlir.codegen.math.half import loaded_as, to_accumulators
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.shapes import has_static_shape, shape_of
from glow_mlir.dialects.target import Target


@kernel("depthwise-points")
class DepthwisePointsKernel(DepthwiseConvKernel):
    """Convolutions with one filter per channel: a step computes a vector of channels of one pixel."""

    name = "depthwise-points"
    AXES = (PACK, "points")
    RUN_TIME_SIZES = False
    ROW_TILING = False

    def accepts(self, op: ConvOp) -> bool:
        return all(map(has_static_shape, op.operands)) and super().accepts(op)

    def cuts(self, op: ConvOp, target: Target) -> Mapping[str, int]:
        *points, channels = shape_of(op.result)
        pack = packing_cuts(op, self.packed(op, target), target)
        return {**pack, "points": math.prod(points) * channels // _lanes(op, target)}

    def emit(self, call: KernelCall[ConvOp]) -> None:
        scratch = call.many("scratch") or [call.one("filter")]
        filters = packed_operand(call, "filter", self.packed(call.op, call.target)["filter"], scratch[0])
        if not call.runs("points"):
            return
        lanes = _lanes(call.op, call.target)
        *points, channels = call.result.shape
        steps = (*points, channels // lanes)
        with call.b.loop(*call.share("points").of(math.prod(steps))) as step:
            *pixel, block = unraveled(step, steps)
            _point(call, filters, pixel, call.b.index(block) * lanes, lanes)


def _lanes(op: ConvOp, target: Target) -> int:
    """The number of channels that a thread computes."""
    lanes = target.vector_width(ConvolutionForm.of(op).dot(target).accumulators)
    return lanes if shape_of(op.result)[-1] % lanes == 0 else 1


def _point(call: KernelCall[ConvOp], filters: Value, pixel: list[Index], channel: Value, lanes: int) -> None:
    """Compute and store `lanes` channels of one pixel."""
    b, source, sink = call.b, call.one("input"), Sink.of(call)
    form = ConvolutionForm.of(call.op)
    dot, window, pitches = form.dot(call.target).singly, form.window, source.strides[1:-1]
    moves = [stride * pitch for stride, pitch in zip(window.strides, pitches, strict=True)]
    begin = linear(pixel, (source.strides[0], *moves)) + channel
    bias = call.maybe("bias")
    type_ = vector(dot.accumulators, lanes)
    total = b.constant(0, type_) if bias is None else bias.pointer.at(channel, dot.accumulators).load(type_)
    taps = itertools.product(*map(range, window.kernel))
    for number, tap in enumerate(taps):
        moved = linear(tap, [dilation * pitch for dilation, pitch in zip(window.dilations, pitches, strict=True)])
        x = source.pointer.at(begin + moved, loaded_as(dot.left)).load(vector(loaded_as(dot.left), lanes))
        at = channel + number * form.filters
        y = filters.at(at, loaded_as(dot.right)).load(vector(loaded_as(dot.right), lanes))
        factors = to_accumulators(b, x, dot.left, dot.accumulators), to_accumulators(b, y, dot.right, dot.accumulators)
        total = dot.multiply_add(b, factors[:1], factors[1:], total)
    offsets = [linear(pixel, strides[:-1]) + channel * strides[-1] for strides in sink.strides]
    sink.store(b, [b.index(offset) for offset in offsets], [strides[-1] for strides in sink.strides], total)

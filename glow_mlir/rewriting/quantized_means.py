"""Means of dequantized values as sums of quantized values with another scale."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width, is_integer, storage_of
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, SumPoolOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, StorageCastOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.quant import uniform, zero_point_of
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.windows import Window, is_channels_last, split_sizes
from glow_mlir.ir.patterns import Pattern, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.quantized_values import quantized_of
from glow_mlir.support.symbols import Sizes

LONGEST_SUM = 1 << 16
"""Maximum number of 16-bit values in an i32 sum, which is safe for 8-bit values."""

MIN_IMAGE_RANK = 3
"""Minimum rank of an image: batch, channels, and one spatial axis."""


class MeanOfQuantized(Pattern):
    """Replace a mean of dequantized values by an i32 sum of quantized values; the scale absorbs the count."""

    @rooted
    def match_and_rewrite(self, op: ReduceMeanOp, rewriter: Rewriter, /) -> None:
        quantized = quantized_of(op.input, rewriter.storage)
        if quantized is None or isinstance(quantized.scale, SSAValue):
            return
        shape, element = shape_of(op.input), element_of(quantized.value)
        count = math.prod(shape[axis] for axis in op.reduced_axes())
        if byte_width(element) > 2 or not 0 < count <= LONGEST_SUM // 2:
            return
        emit = rewriter.emit
        wide = emit(CastOp, emit(StorageCastOp, quantized.value, to=storage_of(element)), to=i32)
        sums = emit(ReduceSumOp, wide, axes=op.axes, keepdims=op.keepdims)
        to = uniform(i32, f32, quantized.scale / count, zero_point_of(element) * count)
        rewriter.replace(op, DequantizeOp.make(emit(StorageCastOp, sums, to=to)))


class SumImages(Pattern):
    """Replace sums over whole images by window sums of the same size, which need no i32 copy of the image."""

    @rooted
    def match_and_rewrite(self, op: ReduceSumOp, rewriter: Rewriter, /) -> None:
        wide = op.input.owner
        if not isinstance(wide, CastOp) or wide.to != i32 or byte_width(element_of(wide.input)) > 1:
            return
        if not is_integer(element_of(wide.input)) or rank_of(op.input) < MIN_IMAGE_RANK:
            return
        _, *image, channels = sizes_of(wide.input)
        window = [size for size in image if isinstance(size, int) and size > 0]
        if len(window) < len(image) or channels == 1 or set(op.reduced_axes()) != set(range(1, len(image) + 1)):
            return
        sums = rewriter.emit(SumPoolOp, wide.input, kernel_shape=window)
        rewriter.replace(op, ReshapeOp.make(sums, shape=sizes_of(op.result)))


class AverageOfQuantized(Pattern):
    """Replace an average pool of dequantized values by a window sum divided by the count."""

    @rooted
    def match_and_rewrite(self, op: AvgPoolOp, rewriter: Rewriter, /) -> None:
        quantized = quantized_of(op.input, rewriter.storage)
        if quantized is None or isinstance(quantized.scale, SSAValue) or byte_width(element_of(quantized.value)) > 1:
            return
        _, spatial, _ = split_sizes(op.input, op.layout)
        window, is_last = op.window(), is_channels_last(op.layout)
        plain = Window(window.kernel, window.strides, window.pads, window.dilations)
        if plain.outputs(spatial) != window.outputs(spatial) or math.prod(window.kernel) > LONGEST_SUM:
            return
        counts = _counts(plain, spatial, flag(op.count_include_pad))
        if not counts.all():
            return
        emit = rewriter.emit
        properties = {"strides": plain.strides, "pads": plain.pads, "dilations": plain.dilations}
        sums = emit(SumPoolOp, quantized.value, kernel_shape=plain.kernel, layout=op.layout, **properties)
        scale = np.float32(quantized.scale) / counts
        shaped = scale[..., np.newaxis] if is_last and scale.ndim else scale
        rewriter.replace(op, DequantizeOp.make(sums, emit.constant(shaped.astype(np.float32), "scale")))


def _counts(window: Window, spatial: Sizes, counts_padding: bool) -> np.ndarray:
    """The number of elements in each window: one number, or one per output position."""
    if counts_padding or not any(window.pads):
        return np.asarray(math.prod(window.kernel), np.float32)
    counts = np.ones((), np.float32)
    for axis, size in enumerate(static(spatial)):
        starts = np.arange(window.output(axis, size)) * window.strides[axis] - window.padding(axis)[0]
        taps = starts[:, np.newaxis] + np.arange(window.kernel[axis]) * window.dilations[axis]
        counts = counts[..., np.newaxis] * ((taps >= 0) & (taps < size)).sum(axis=1).astype(np.float32)
    return counts

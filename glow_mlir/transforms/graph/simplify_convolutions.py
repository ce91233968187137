"""`simplify-convolutions`: crop the filters of convolutions of small images, or turn these into matrix products."""

from __future__ import annotations

import math
from dataclasses import replace as changed

import numpy as np

from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape, shape_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.windows import Window, is_channels_last, split_sizes
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import product_of
from glow_mlir.transforms.graph.filter_gradients import FilterGradientToProducts


class ConvolutionToProduct(Pattern):
    """
    Replace a convolution whose window is the whole image, in one group, by a product: rows of images, columns of
    filters.
    """

    @rooted
    def match_and_rewrite(self, op: ConvOp, rewriter: Rewriter, /) -> None:
        if not is_channels_last(op.layout) or integer(op.group) != 1:
            return
        window, taps = small_window(op)
        is_whole = window.kernel == split_sizes(op.input, op.layout)[1] and not any(window.pads)
        is_one = product_of(split_sizes(op.result, op.layout)[1]) == 1
        known = kept_filter(op, taps, rewriter.storage) if is_whole and is_one else None
        if known is None:
            return
        batch, outputs = shape_of(op.input)[0], known.shape[0]
        shape: Shape = (batch, math.prod(known.shape[1:]))
        columns = known.reshaped((outputs, shape[1])).transposed((1, 0))
        emit = rewriter.emit
        rows = emit(ReshapeOp, op.input, shape=shape)
        product = emit(MatMulOp, rows, emit.constant(columns, op.filter.name_hint or "filter"), op.bias, to=op.to)
        rewriter.replace(op, ReshapeOp.make(product, shape=shape_of(op.result)))


class CropFilter(Pattern):
    """Crop rows and columns of a constant filter that only meet padding."""

    @rooted
    def match_and_rewrite(self, op: ConvOp, rewriter: Rewriter, /) -> None:
        if not is_channels_last(op.layout):
            return
        window, taps = small_window(op)
        known = kept_filter(op, taps, rewriter.storage) if window != op.window() else None
        if known is None:
            return
        emit = rewriter.emit
        properties = {
            "strides": op.strides,
            "dilations": op.dilations,
            "group": op.group,
            "layout": op.layout,
            "to": op.to,
        }
        constant = emit.constant(known, op.filter.name_hint or "filter")
        rewriter.replace(op, (), [emit(ConvOp, op.input, constant, op.bias, pads=window.pads, **properties)])


@dataclass(frozen=True)
class SimplifyConvolutionsPass(PatternPass):
    """
    Crop rows and columns of constant filters that only meet padding (Glow's OptimizeSmallConv), and turn a convolution
    whose window is the whole image into a matrix product.

    The convolution must have its channels last; a product also requires one group and a constant filter. The gradient
    of a filter for images with few channels becomes a product for each of its taps.
    """

    name = "simplify-convolutions"
    WALKS = (Walk((ConvolutionToProduct(), CropFilter(), FilterGradientToProducts())),)


def small_window(op: ConvOp) -> tuple[Window, list[tuple[int, int]]]:
    """The window without taps that only meet padding, and the range of remaining taps along each axis."""
    window = op.window()
    taps = [seen_taps(window, axis, size) for axis, size in enumerate(static(split_sizes(op.input, op.layout)[1]))]
    cut = cropped(window, taps)
    return cut, taps if cut != window else [(0, size) for size in window.kernel]


def kept_filter(op: ConvOp, taps: list[tuple[int, int]], storage: Storage) -> Deferred | None:
    """Crop a constant filter to those taps; `None` if the filter is not constant."""
    known = storage.deferred(op.filter)
    if known is None or all(span == (0, size) for span, size in zip(taps, op.window().kernel, strict=True)):
        return known
    return Stored(np.ascontiguousarray(known.array()[slice(None), *(slice(first, last) for first, last in taps)]))


def seen_taps(window: Window, axis: int, size: int) -> tuple[int, int]:
    """The range of taps along a spatial axis that meet an image element at some output."""
    stride, dilation, before = window.strides[axis], window.dilations[axis], window.padding(axis)[0]
    last = (window.output(axis, size) - 1) * stride - before
    seen = [tap for tap in range(window.kernel[axis]) if last + tap * dilation >= 0 and tap * dilation - before < size]
    return (seen[0], seen[-1] + 1) if seen else (0, window.kernel[axis])


def cropped(window: Window, taps: list[tuple[int, int]]) -> Window:
    """The window with only those taps and the same number of results; unchanged if a padding would be negative."""
    ends = [(first, size - last) for (first, last), size in zip(taps, window.kernel, strict=True)]
    leading = [window.padding(axis)[0] - first * window.dilations[axis] for axis, (first, _) in enumerate(ends)]
    trailing = [window.padding(axis)[1] - last * window.dilations[axis] for axis, (_, last) in enumerate(ends)]
    if min(*leading, *trailing) < 0:
        return window
    kernel = tuple(last - first for first, last in taps)
    return changed(window, kernel=kernel, pads=(*leading, *trailing))

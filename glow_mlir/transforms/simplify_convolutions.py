"""`simplify-convolutions`: convolutions of small images read less of the filter, or are matrix products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import replace as changed

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape, shape_of
from glow_mlir.dialects.windows import Window, is_channels_last, split_image
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace


@dataclass(frozen=True)
class SimplifyConvolutionsPass(ModulePass):
    """
    Cut off rows and columns of constant filters that only ever meet padding (Glow's OptimizeSmallConv), and make a
    convolution whose window is the whole image a matrix product.

    The convolution must have its channels last, and for a product one group and a constant filter.
    """

    name = "simplify-convolutions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, ConvOp) and is_channels_last(candidate.layout):
                    _simplify(candidate, storage)
            erase_dead(function.block)


def _simplify(op: ConvOp, storage: Storage) -> None:
    """Simplify one convolution, where its image is small."""
    window, sizes = op.window(), split_image(op.input, op.layout)[1]
    taps = [seen_taps(window, axis, size) for axis, size in enumerate(sizes)]
    cut = cropped(window, taps)
    whole = cut.kernel == sizes and not any(cut.pads) and math.prod(split_image(op.result, op.layout)[1]) == 1
    product = whole and integer(op.group) == 1
    filter_ = storage.deferred(op.filter) if cut != window or product else None
    if filter_ is None:
        return
    emit = Emitter(op, storage)
    picked = (slice(None), *(slice(first, last) for first, last in taps))
    kept = Stored(np.ascontiguousarray(filter_.array()[picked])) if cut != window else filter_
    if product:
        replace(op, [_as_product(op, kept, emit)])
        return
    properties = {"strides": op.strides, "dilations": op.dilations, "group": op.group, "layout": op.layout}
    constant = emit.constant(kept, op.filter.name_hint or "filter")
    replace(op, [emit(ConvOp, op.input, constant, op.bias, pads=cut.pads, **properties)])


def seen_taps(window: Window, axis: int, size: int) -> tuple[int, int]:
    """The range of taps along a spatial axis that meet an element of the image of that size at some place."""
    stride, dilation, before = window.strides[axis], window.dilations[axis], window.padding(axis)[0]
    last = (window.output(axis, size) - 1) * stride - before
    seen = [tap for tap in range(window.kernel[axis]) if last + tap * dilation >= 0 and tap * dilation - before < size]
    return (seen[0], seen[-1] + 1) if seen else (0, window.kernel[axis])


def cropped(window: Window, taps: list[tuple[int, int]]) -> Window:
    """The window with only those taps, whose results are as many; the same one where a padding would be negative."""
    ends = [(first, size - last) for (first, last), size in zip(taps, window.kernel, strict=True)]
    leading = [window.padding(axis)[0] - first * window.dilations[axis] for axis, (first, _) in enumerate(ends)]
    trailing = [window.padding(axis)[1] - last * window.dilations[axis] for axis, (_, last) in enumerate(ends)]
    if min(*leading, *trailing) < 0:
        return window
    kernel = tuple(last - first for first, last in taps)
    return changed(window, kernel=kernel, pads=(*leading, *trailing))


def _as_product(op: ConvOp, filter_: Deferred, emit: Emitter) -> SSAValue:
    """The product of each image as one row, and each filter as one column."""
    batch, outputs = shape_of(op.input)[0], filter_.shape[0]
    shape: Shape = (batch, math.prod(filter_.shape[1:]))
    columns = filter_.reshaped((outputs, shape[1])).transposed((1, 0))
    rows = emit(ReshapeOp, op.input, shape=shape)
    product = emit(MatMulOp, rows, emit.constant(columns, op.filter.name_hint or "filter"), op.bias)
    return emit(ReshapeOp, product, shape=shape_of(op.result))

"""Convolutions of images that are channels, as gradients of filters are: products for each element of the result."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from glow_mlir.backends.interface import costs_of
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import has_static_shape, rank_of, shape_of
from glow_mlir.dialects.windows import Window, is_channels_last, split_image
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.taps import Taps

MIN_WINDOW = 64
"""The minimum number of elements of a window: those of gradients are as large as images."""

MAX_TAPS = 25
"""The maximum number of products, each of which is an instruction of its own."""


class FilterGradientToProducts(Pattern):
    """
    Replace a convolution of transposed images by products, one for each element of its small result.

    The gradient of a filter is a convolution whose batch are the channels of images, whose filters are the cotangent of
    the result, and whose channels are the images of the batch. With few channels, its few windows keep few
    accumulators busy. The gradient of a filter of one tap is one product, whatever its channels.
    """

    @rooted
    def match_and_rewrite(self, op: ConvOp, rewriter: Rewriter, /) -> None:
        images, cotangent = _exchanged(op.input), _exchanged(op.filter)
        if images is None or cotangent is None or not is_channels_last(op.layout) or integer(op.group) != 1:
            return
        if op.bias is not None or op.to is not None or not (has_static_shape(images) and has_static_shape(cotangent)):
            return
        window = op.window()
        channels = shape_of(images)[-1]
        taps = prod(split_image(shape_of(op.result), op.layout)[1])
        are_few = 0 < taps <= MAX_TAPS and channels <= costs_of(rewriter.function.target).tap_product_channels
        if taps != 1 and (prod(window.kernel) < MIN_WINDOW or not are_few):
            return
        rewriter.replace(op, (), [_products(op, window, images, cotangent, rewriter.emit)])


def _exchanged(value: SSAValue) -> SSAValue | None:
    """The source of a transpose that exchanges the first and the last axis; `None` for another value."""
    op, rank = value.owner, rank_of(value)
    if not isinstance(op, TransposeOp) or ints(op.permutation) != (rank - 1, *range(1, rank - 1), 0):
        return None
    return op.input


def _products(op: ConvOp, window: Window, images: SSAValue, cotangent: SSAValue, emit: Emitter) -> SSAValue:
    """The result [channels, taps…, outputs] of products [channels, elements] by [elements, outputs], tap by tap."""
    rank = rank_of(images)
    _, windows, outputs = split_image(shape_of(op.result), op.layout)
    batch, channels = shape_of(images)[0], shape_of(images)[-1]
    depth = batch * prod(window.kernel)
    rows = emit(ReshapeOp, cotangent, shape=(depth, outputs))
    # The windows take the place of the kernel: each reads an element of the kernel for each step of its own.
    exchanged = Window(windows, window.dilations, window.pads, window.strides)
    taps = Taps(exchanged, op.layout, shape_of(images)[1:-1], window.kernel)
    found: list[SSAValue] = []
    for part in taps.read(images, emit):
        columns = emit(ReshapeOp, part, shape=(depth, channels))
        found.append(emit(MatMulOp, columns, rows, transpose_left=True))
    shape = (1, channels, outputs)
    joined = (
        found[0] if len(found) == 1 else emit(ConcatOp, [emit(ReshapeOp, item, shape=shape) for item in found], axis=0)
    )
    result = emit(ReshapeOp, joined, shape=(*windows, channels, outputs))
    return emit(TransposeOp, result, permutation=(rank - 2, *range(rank - 2), rank - 1))

"""Convolutions, plain, depthwise, in groups and transposed, of floats and of codes of 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.pooling import SumPoolOp
from glow_mlir.dialects.properties import flag, integer, ints
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of
from glow_mlir.dialects.windows import Window, is_channels_last
from tosa_backend.builder import TosaBuilder
from tosa_backend.elements import held, held_zero_point
from tosa_backend.rules import emits

Widths = list[tuple[int, int]]


def multiplies(left: SSAValue, right: SSAValue) -> bool:
    """Whether TOSA has products of such operands: floats, or integers of 8 bits."""
    elements = [held(element_of(value)) for value in (left, right)]
    return elements in ([f32, f32], [i8, i8])


def accumulator(value: SSAValue) -> Attribute:
    """The type of sums of products of an operand."""
    return f32 if held(element_of(value)) == f32 else i32


def zero_point(b: TosaBuilder, value: SSAValue) -> SSAValue:
    """What stands for 0 among the elements of an operand."""
    element = element_of(value)
    return b.splat(0 if element == f32 else held_zero_point(element), held(element))


def whole_windows(b: TosaBuilder, x: SSAValue, window: Window) -> tuple[SSAValue, Widths]:
    """
    An image and pads in which windows end where the image does: TOSA takes no others.

    What no window reads is taken from the pads behind, and then from the image.
    """
    sizes = list(shape_of(x)[1:-1])
    widths: Widths = []
    for axis, size in enumerate(sizes):
        before, after = window.padding(axis)
        count = window.output(axis, size)
        wanted = (count - 1) * window.strides[axis] + window.extent(axis)
        after += wanted - (before + size + after)
        if after < 0:
            sizes[axis], after = size + after, 0
        widths.append((before, after))
    shape = (shape_of(x)[0], *sizes, shape_of(x)[-1])
    return b.slice(x, [0] * len(shape), shape), widths


def flat(widths: Widths) -> tuple[int, ...]:
    """Pads in the order of TOSA: those of each axis side by side."""
    return tuple(width for pair in widths for width in pair)


def two_axes(window: Window) -> Window:
    """A window over one axis as one over two."""
    if len(window.kernel) > 1:
        return window
    before, after = window.pads
    return Window((*window.kernel, 1), (*window.strides, 1), (before, 0, after, 0), (*window.dilations, 1))


def as_image(shape: Shape) -> Shape:
    """The shape of an image or filter, with a second spatial axis where there is one alone."""
    *before, last = shape
    return shape if len(shape) > 3 else (*before, 1, last)


def _can_convolve(op: ConvOp) -> bool:
    return is_channels_last(op.layout) and 3 <= rank_of(op.input) <= 5 and multiplies(op.input, op.filter)


@emits(ConvOp, when=_can_convolve)
def conv(op: ConvOp, b: TosaBuilder) -> SSAValue:
    """CONV2D, CONV3D or DEPTHWISE_CONV2D; groups of several channels are convolutions side by side."""
    window, group = two_axes(op.window()), integer(op.group)
    x = b.reshape(b.value(op.input), as_image(shape_of(op.input)))
    weights = b.reshape(b.value(op.filter), as_image(shape_of(op.filter)))
    x, widths = whole_windows(b, x, window)
    bias = bias_of(op, b, shape_of(weights)[0])
    zeros = zero_point(b, op.input), zero_point(b, op.filter)
    element = accumulator(op.input)
    fields = {"pad": flat(widths), "stride": window.strides, "dilation": window.dilations, "acc_type": element}
    shape = as_image(shape_of(op.result))
    if group == shape_of(x)[-1] > 1 and len(window.kernel) == 2:
        kernel = _by_channel(b, weights, group)
        found = b("depthwise_conv2d", x, kernel, bias, *zeros, shape=shape, element=element, **fields)
    else:
        name = f"conv{len(window.kernel)}d"
        count = shape[-1] // group
        parts: list[SSAValue] = []
        for number, (image, filters) in enumerate(zip(*_groups(b, x, weights, group), strict=True)):
            addends = b.slice(bias, [number * count], (count,)) if shape_of(bias) != (1,) else bias
            part = (*shape[:-1], count)
            parts.append(b(name, image, filters, addends, *zeros, shape=part, element=element, **fields))
        found = b.concat(parts, len(shape) - 1)
    return b.reshape(found, shape_of(op.result))


def bias_of(op: ConvOp | ConvTransposeOp, b: TosaBuilder, channels: int) -> SSAValue:
    """The bias of a convolution, its own or the offset of what rescales it; else one zero."""
    if op.bias is not None:
        return b.value(op.bias)
    taken = b.biases.get(op)
    return b.splat(0, accumulator(op.input)) if taken is None else b.constant(np.ascontiguousarray(taken))


def _by_channel(b: TosaBuilder, weights: SSAValue, channels: int) -> SSAValue:
    """Filters [O, H, W, 1] as [H, W, channels, O / channels]."""
    outputs, height, width, _ = shape_of(weights)
    apart = b.reshape(weights, (channels, outputs // channels, height, width))
    return b.transpose(apart, (2, 3, 0, 1))


def _groups(
    b: TosaBuilder, x: SSAValue, weights: SSAValue, group: int
) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """The channels of an image that each group reads, and its filters."""
    *around, channels = shape_of(x)
    outputs, *kernel = shape_of(weights)
    depth, count = channels // group, outputs // group
    images = [b.slice(x, [*[0] * len(around), g * depth], (*around, depth)) for g in range(group)]
    filters = [b.slice(weights, [g * count, *[0] * len(kernel)], (count, *kernel)) for g in range(group)]
    return images, filters


def _can_transpose(op: ConvTransposeOp) -> bool:
    window = op.window()
    is_plain = integer(op.group) == 1 and set(window.dilations) == {1} and is_channels_last(op.layout)
    short = all(max(window.padding(axis)) < window.kernel[axis] for axis in range(len(window.kernel)))
    fits = rank_of(op.input) == 4 and held(element_of(op.input)) == f32
    return fits and is_plain and short and all(k >= s for k, s in zip(window.kernel, window.strides, strict=True))


@emits(ConvTransposeOp, when=_can_transpose)
def conv_transpose(op: ConvTransposeOp, b: TosaBuilder) -> SSAValue:
    """TRANSPOSE_CONV2D, whose pads are what is added."""
    window, extra = op.window(), ints(op.output_padding) or (0, 0)
    pads = [(-before, extra[axis] - after) for axis in (0, 1) for before, after in [window.padding(axis)]]
    weights = b.transpose(b.value(op.filter), (3, 1, 2, 0))
    operands = (b.value(op.input), weights, bias_of(op, b, shape_of(weights)[0]))
    zeros = zero_point(b, op.input), zero_point(b, op.filter)
    fields = {"out_pad": flat(pads), "stride": window.strides, "acc_type": f32}
    return b("transpose_conv2d", *operands, *zeros, shape=shape_of(op.result), element=f32, **fields)


def _can_sum(op: SumPoolOp) -> bool:
    is_image = rank_of(op.input) == 4 and is_channels_last(op.layout) and not flag(op.ceil_mode)
    return is_image and held(element_of(op.input)) == i8


@emits(SumPoolOp, when=_can_sum)
def sum_pool(op: SumPoolOp, b: TosaBuilder) -> SSAValue:
    """A depthwise convolution with filters of ones, which takes the zero point out."""
    window = op.window()
    x, widths = whole_windows(b, b.value(op.input), window)
    ones = b.splat(1, i8, (*window.kernel, shape_of(x)[-1], 1))
    zeros = zero_point(b, op.input), b.splat(0, i8)
    fields = {"pad": flat(widths), "stride": window.strides, "dilation": window.dilations, "acc_type": i32}
    return b("depthwise_conv2d", x, ones, b.splat(0, i32), *zeros, shape=shape_of(op.result), element=i32, **fields)

"""Gradients of convolutions, which are convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import Col2ImOp, ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.windows import CHANNELS_FIRST, Window, channel_axis, is_channels_last, join_image, split_sizes
from glow_mlir.differentiation.contributions import Contributions, converted_like
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.rewriting.taps import Taps
from glow_mlir.support.symbols import product_of

MIN_BATCH = 4
"""The least number of images for which they are used as channels; with fewer, a product for each tap is faster."""


@gradient(ConvOp)
def conv(op: ConvOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """For the input, a transposed convolution with the same filter; for the filter, see `by_filter`."""
    g, window = converted_like(cotangent, op.input, emit), op.window()
    return {
        "input": lambda: transposed_convolution(g, op.filter, window, op.input, integer(op.group), op.layout, emit),
        "filter": lambda: by_filter(op.input, g, window, integer(op.group), op.layout, emit),
        "bias": lambda: _by_bias(cotangent, op.bias, op.layout, emit),
    }


@gradient(ConvTransposeOp)
def conv_transpose(op: ConvTransposeOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """As for the convolution whose gradient it is, with input and result exchanged."""
    g, window = converted_like(cotangent, op.input, emit), op.window()

    def by_input() -> SSAValue:
        properties = {"strides": op.strides, "pads": op.pads, "dilations": op.dilations}
        value = emit(ConvOp, g, op.filter, None, group=op.group, layout=op.layout, **properties)
        wanted = sizes_of(op.input)
        # An output padding as long as a stride has room for windows that do not exist.
        if sizes_of(value) == wanted:
            return value
        return emit(SliceOp, value, starts=(0,) * len(wanted), ends=wanted)

    return {
        "input": by_input,
        "filter": lambda: by_filter(g, op.input, window, integer(op.group), op.layout, emit),
        "bias": lambda: _by_bias(cotangent, op.bias, op.layout, emit),
    }


def transposed_convolution(
    g: SSAValue, filter_: SSAValue, window: Window, like: SSAValue, group: int, layout: StringAttr, emit: Emitter
) -> SSAValue:
    """The transposed convolution whose result has the spatial sizes of `like`, even if no window reaches the end."""
    strides, pads, extra = window.strides, list(window.pads), [0] * len(window.kernel)
    if set(strides) != {1} or window.ceil_mode:
        taps = Taps.of(window, like, g, layout)
        for axis in range(len(extra)):
            pads[axis + len(extra)], extra[axis] = max(0, taps.behind(axis)), max(0, -taps.behind(axis))
    properties = {"strides": strides, "pads": pads, "dilations": window.dilations, "output_padding": extra}
    return emit(ConvTransposeOp, g, filter_, None, group=group, layout=layout, **properties)


def _by_bias(cotangent: SSAValue, bias: SSAValue | None, layout: StringAttr, emit: Emitter) -> SSAValue | None:
    """The sum over batch and space."""
    if bias is None:
        return None
    rank = rank_of(cotangent)
    channels = channel_axis(rank, layout)
    axes = tuple(axis for axis in range(rank) if axis != channels)
    return converted_like(emit(ReduceSumOp, cotangent, axes=axes, keepdims=False), bias, emit)


# ---- by the filter ---------------------------------------------------------------------------------------------


def by_filter(image: SSAValue, g: SSAValue, window: Window, group: int, layout: StringAttr, emit: Emitter) -> SSAValue:
    """
    For each tap, the product of the elements it reads in `image` and of `g`, which has an element for each window.

    Without mixing of channels, these are sums of products; for many images, a convolution with images as channels;
    otherwise a matrix product for each tap.
    """
    batch, _, channels = split_sizes(image, layout)
    outputs = split_sizes(g, layout)[2]
    taps = Taps.of(window, image, g, layout)
    if group > 1 and channels == outputs == group:
        return _sums(taps, image, g, emit)
    has_batch = isinstance(batch, int) and batch >= MIN_BATCH and set(window.kernel) != {1}
    if has_batch or group > 1:
        return _convolution(taps, image, g, group, emit)
    return _products(taps, image, g, emit)


def _joined(taps: Taps, parts: Sequence[SSAValue], outputs: int, emit: Emitter) -> SSAValue:
    """A filter from the matrices [outputs, inputs] of all taps."""
    kernel, inputs = taps.window.kernel, shape_of(parts[0])[-1]
    shape = static(join_image(outputs, kernel, inputs, taps.layout))
    if len(parts) == 1:
        return emit(ReshapeOp, parts[0], shape=shape)
    axis = 1 if is_channels_last(taps.layout) else 2
    split = (outputs, 1, inputs) if axis == 1 else (outputs, inputs, 1)
    return emit(
        ReshapeOp, emit(ConcatOp, [emit(ReshapeOp, part, shape=split) for part in parts], axis=axis), shape=shape
    )


def _sums(taps: Taps, image: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """For each tap and channel, the sum of products."""
    rank = rank_of(g)
    channels = channel_axis(rank, taps.layout)
    axes, count = tuple(axis for axis in range(rank) if axis != channels), shape_of(g)[channels]
    sums = [emit(ReduceSumOp, emit(MulOp, part, g), axes=axes, keepdims=False) for part in taps.read(image, emit)]
    return _joined(taps, [emit(ReshapeOp, part, shape=(count, 1)) for part in sums], count, emit)


def _products(taps: Taps, image: SSAValue, g: SSAValue, emit: Emitter) -> SSAValue:
    """For each tap, the matrix product over all windows; with `channels_first`, summed over images."""
    sizes, parts = sizes_of(g), taps.read(image, emit)
    if is_channels_last(taps.layout):

        def rows(value: SSAValue) -> SSAValue:
            return emit(ReshapeOp, value, shape=(product_of(sizes[:-1]), sizes_of(value)[-1]))

        left, (outputs,) = rows(g), static(sizes[-1:])
        return _joined(taps, [emit(MatMulOp, left, rows(part), transpose_left=True) for part in parts], outputs, emit)

    def columns(value: SSAValue) -> SSAValue:
        return emit(ReshapeOp, value, shape=(*sizes_of(value)[:2], product_of(sizes[2:])))

    left, (outputs,) = columns(g), static(sizes[1:2])
    found = [emit(MatMulOp, left, columns(part), transpose_right=True) for part in parts]
    return _joined(taps, [emit(ReduceSumOp, part, axes=(0,), keepdims=False) for part in found], outputs, emit)


def _convolution(taps: Taps, image: SSAValue, g: SSAValue, group: int, emit: Emitter) -> SSAValue:
    """
    A convolution of the image with `g` as the filter; images and channels are exchanged.

    Strides and dilations are exchanged. Its channels are, within each group, the images.
    """
    window, axes, rank = taps.window, range(len(taps.inputs)), len(taps.inputs) + 2
    behind = [taps.behind(axis) for axis in axes]
    pads = (*window.pads[: rank - 2], *(max(0, size) for size in behind))
    ends = list(sizes_of(image))
    for axis, size in zip(taps.axes, behind, strict=True):
        ends[axis] = ends[axis] + min(0, size)
    if tuple(ends) != sizes_of(image):
        image = emit(SliceOp, image, starts=(0,) * rank, ends=ends)
    filter_ = emit(TransposeOp, g, permutation=_swapped(rank, taps.layout))
    images = _grouped_by_channel(image, group, taps.layout, emit)
    properties = {"strides": window.dilations, "dilations": window.strides, "pads": pads}
    found = emit(ConvOp, images, filter_, None, group=group, layout=taps.layout, **properties)
    return emit(TransposeOp, found, permutation=_swapped(rank, taps.layout))


def _swapped(rank: int, layout: StringAttr) -> Shape:
    """The axes of an image, with batch and channels exchanged."""
    order, channels = list(range(rank)), channel_axis(rank, layout)
    order[0], order[channels] = channels, 0
    return tuple(order)


def _grouped_by_channel(image: SSAValue, group: int, layout: StringAttr, emit: Emitter) -> SSAValue:
    """The image as [channels of a group, …, groups · images], from an image with batch and channels exchanged."""
    rank = rank_of(image)
    if group == 1:
        return emit(TransposeOp, image, permutation=_swapped(rank, layout))
    batch, spatial, channels = split_sizes(image, layout)
    depth, space = static((channels,))[0] // group, len(spatial)
    if is_channels_last(layout):
        split, order = (batch, *spatial, group, depth), (rank, *range(1, space + 1), rank - 1, 0)
    else:
        split, order = (batch, group, depth, *spatial), (2, 1, 0, *range(3, rank + 1))
    moved = emit(TransposeOp, emit(ReshapeOp, image, shape=split), permutation=order)
    return emit(ReshapeOp, moved, shape=join_image(depth, spatial, batch * group, layout))


# ---- columns ---------------------------------------------------------------------------------------------------


@gradient(Col2ImOp)
def col2im(op: Col2ImOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """The windows of the cotangent as columns."""

    def columns() -> SSAValue:
        taps = Taps(op.window(), StringAttr(CHANNELS_FIRST), shape_of(cotangent)[2:], op.windows())
        batch, channels, *_ = sizes_of(cotangent)
        shape = (batch, channels, 1, product_of(taps.outputs))
        parts = [emit(ReshapeOp, part, shape=shape) for part in taps.read(cotangent, emit)]
        return emit(ReshapeOp, emit(ConcatOp, parts, axis=2), shape=sizes_of(op.input))

    return {"input": columns}

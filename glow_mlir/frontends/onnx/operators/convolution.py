"""ONNX's convolutions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import Col2ImOp, ConvOp, ConvTransposeOp
from glow_mlir.dialects.shapes import Shape, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest, static
from glow_mlir.frontends.builder.agreement import is_of_data, with_size
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.spatial import kernel_shape, padding
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size, Sizes


@onnx_operator("Conv")
def conv(node: Node) -> SSAValue:
    """A channels-last convolution between transposes."""
    return convolved(node, node.input(0), node.input(1), node.optional(2))


def convolved(
    node: Node,
    image: SSAValue,
    filters: SSAValue,
    bias: SSAValue | None,
    *,
    weights: int = 1,
    group: int | None = None,
    is_last: bool = False,
    pads: Shape | None = None,
) -> SSAValue:
    """
    A channels-last convolution of `image` with the attributes of the node, or with other `pads`.

    The operand at `weights` has the spatial sizes of the filters. If `is_last`, image and result are channels-last;
    otherwise they are transposed.
    """
    kernel = kernel_shape(node, weights)
    ones = (1,) * len(kernel)
    strides, dilations = node.ints("strides", ones), node.ints("dilations", ones)
    groups = node.int("group", 1) if group is None else group
    image = _of_channels(node, image, -1 if is_last else 1, sizes_of(filters)[1] * groups)
    result = node.emit(
        ConvOp,
        image if is_last else to_channels_last(node, image),
        to_channels_last(node, filters),
        bias,
        strides=strides,
        pads=padding(node, kernel, strides, dilations, is_last=is_last) if pads is None else pads,
        dilations=dilations,
        group=groups,
    )
    return result if is_last else to_channels_first(node, result)


def _of_channels(node: Node, image: SSAValue, axis: int, channels: Size) -> SSAValue:
    """The image with the number of channels that the filters read, if its own depends on data."""
    position = axis % rank_of(image)
    return with_size(node, image, position, channels) if is_of_data(node, sizes_of(image)[position]) else image


def _transposed_padding(
    node: Node, kernel: Shape, strides: Shape, dilations: Shape, extra: Shape
) -> tuple[Shape, Shape]:
    """Pads and output padding, from `pads` or from the output shape that `output_shape` or `auto_pad` requests."""
    spatial, mode = node.sizes()[2:], node.text("auto_pad", "NOTSET")
    wanted: Sizes
    if node.has("output_shape"):
        wanted = node.ints("output_shape")[-len(spatial) :]
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(size * stride for size, stride in zip(spatial, strides, strict=True))
    else:
        return padding(node, kernel, strides, dilations), extra
    before: list[int] = []
    after: list[int] = []
    for axis, size in enumerate(spatial):
        reach = (size - 1) * strides[axis] + extra[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        (total,) = static((reach - wanted[axis],))
        front = max(total, 0) // 2 if mode == "SAME_UPPER" else max(total, 0) - max(total, 0) // 2
        before.append(front)
        after.append(total - front)
    # Beyond the reach of the windows, the end of the output holds only the bias.
    missing = tuple(max(0, -pad) for pad in after)
    pads = (*before, *(max(0, pad) for pad in after))
    return pads, tuple(given + more for given, more in zip(extra, missing, strict=True))


@onnx_operator("ConvTranspose")
def conv_transpose(node: Node) -> SSAValue:
    """A channels-last transposed convolution between transposes."""
    kernel = kernel_shape(node)
    ones = (1,) * len(kernel)
    strides, dilations = node.ints("strides", ones), node.ints("dilations", ones)
    extra = node.ints("output_padding", (0,) * len(kernel))
    pads, extra = _transposed_padding(node, kernel, strides, dilations, extra)
    result = node.emit(
        ConvTransposeOp,
        to_channels_last(node, _of_channels(node, node.input(0), 1, node.sizes(1)[0])),
        to_channels_last(node, node.input(1)),
        node.optional(2),
        strides=strides,
        pads=pads,
        dilations=dilations,
        output_padding=extra,
        group=node.int("group", 1),
    )
    return to_channels_first(node, result)


@onnx_operator("Col2Im", since=18)
def col2im(node: Node) -> SSAValue:
    """Sum overlapping windows into an image; the sizes of image and windows are operands."""
    image, block = node.integers(1, "the shape of the image"), node.integers(2, "the shape of windows")
    node.check_rank(0, (3,), "columns are [N, C * elements, windows]")
    node.check_size(*map(largest, node.sizes()[:2]), *image)
    return node.emit(
        Col2ImOp,
        node.input(),
        image_shape=image,
        block_shape=block,
        strides=node.ints("strides", (1,) * len(image)),
        pads=node.ints("pads", (0,) * (2 * len(image))),
        dilations=node.ints("dilations", (1,) * len(image)),
    )

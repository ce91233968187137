"""ONNX's operators that sample images at positions given by operands."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.sampling import DeformConvOp, GridSampleOp, RoiAlignOp, RoiPoolOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.frontends.onnx.operators.spatial import kernel_shape
from glow_mlir.ir.registry import onnx_operator

_OLD_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
"""Mode before opset 20 → mode since."""


def _grid_sample(node: Node, **changed: str) -> SSAValue:
    properties = ATTRIBUTE_MAPS["GridSample"].import_from(node) | changed
    result = node.emit(GridSampleOp, to_channels_last(node, node.input()), node.input(1), **properties)
    return to_channels_first(node, result)


@onnx_operator("GridSample", since=16)
def grid_sample_of_images(node: Node) -> SSAValue:
    """Images with two spatial axes."""
    word = node.text("mode", "bilinear")
    if word not in _OLD_MODES:
        hint = f"opset {node.version} has {', '.join(_OLD_MODES)}"
        raise ModelError(f"GridSample: mode '{word}' does not exist", node=node.name, hint=hint)
    return _grid_sample(node, mode=_OLD_MODES[word])


@onnx_operator("GridSample", since=20)
def grid_sample(node: Node) -> SSAValue:
    """Images with any number of spatial axes."""
    return _grid_sample(node)


def _roi_align(node: Node, half_pixel: bool) -> SSAValue:
    node.check_rank(0, (4,), "an image is [N, C, H, W]")
    result = node.emit(
        RoiAlignOp,
        to_channels_last(node, node.input()),
        node.input(1),
        node.input(2),
        output_shape=(node.int("output_height", 1), node.int("output_width", 1)),
        **ATTRIBUTE_MAPS["RoiAlign"].import_from(node),
        half_pixel=half_pixel,
    )
    return to_channels_first(node, result)


@onnx_operator("RoiAlign", since=10)
def roi_align_of_pixels(node: Node) -> SSAValue:
    """Corners of regions are at the centers of pixels (no half-pixel shift)."""
    return _roi_align(node, half_pixel=False)


@onnx_operator("RoiAlign", since=16)
def roi_align(node: Node) -> SSAValue:
    """The attribute `coordinate_transformation_mode` selects the half-pixel shift."""
    words = ("half_pixel", "output_half_pixel")
    word = node.text("coordinate_transformation_mode", words[0])
    if word not in words:
        hint = f"it is one of {', '.join(words)}"
        raise ModelError(f"RoiAlign: coordinates '{word}' do not exist", node=node.name, hint=hint)
    return _roi_align(node, half_pixel=word == words[0])


@onnx_operator("MaxRoiPool")
def max_roi_pool(node: Node) -> SSAValue:
    """A channels-last pooling of regions, between transposes."""
    node.check_rank(0, (4,), "an image is [N, C, H, W]")
    result = node.emit(
        RoiPoolOp,
        to_channels_last(node, node.input()),
        node.input(1),
        output_shape=node.ints("pooled_shape"),
        **ATTRIBUTE_MAPS["MaxRoiPool"].import_from(node),
    )
    return to_channels_first(node, result)


@onnx_operator("DeformConv", since=19)
def deform_conv(node: Node) -> SSAValue:
    """A channels-last convolution between transposes."""
    kernel = kernel_shape(node)
    if node.ints("kernel_shape", kernel) != kernel:
        reason = f"DeformConv: kernel_shape {node.ints('kernel_shape')} is not that of the weights, {kernel}"
        raise ModelError(reason, node=node.name)
    mask = node.optional(4)
    result = node.emit(
        DeformConvOp,
        to_channels_last(node, node.input()),
        to_channels_last(node, node.input(1)),
        to_channels_last(node, node.input(2)),
        node.optional(3),
        None if mask is None else to_channels_last(node, mask),
        strides=node.ints("strides", (1,) * len(kernel)),
        pads=node.ints("pads", (0,) * (2 * len(kernel))),
        dilations=node.ints("dilations", (1,) * len(kernel)),
        **ATTRIBUTE_MAPS["DeformConv"].import_from(node),
    )
    return to_channels_first(node, result)

"""ONNX's convolutions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.spatial import padding, to_channels_first, to_channels_last
from glow_mlir.registry import onnx_operator


@onnx_operator("Conv")
def conv(node: Node) -> SSAValue:
    """A channels-last convolution between transposes."""
    kernel = node.shape(1)[2:]
    ones = (1,) * len(kernel)
    strides, dilations = node.ints("strides", ones), node.ints("dilations", ones)
    result = node.emit(
        ConvOp,
        to_channels_last(node, node.input(0)),
        to_channels_last(node, node.input(1)),
        node.optional(2),
        strides=strides,
        pads=padding(node, kernel, strides, dilations),
        dilations=dilations,
        group=node.int("group", 1),
    )
    return to_channels_first(node, result)

"""ONNX's pooling operators."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolOp
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.spatial import padding, to_channels_first, to_channels_last
from glow_mlir.ir.registry import onnx_operator


def pool(node: Node, operator: type[HighOp], value: SSAValue, **properties: AttributeValue) -> SSAValue:
    """What an operator makes of each window of a value that has the shape of the first operand."""
    kernel = node.ints("kernel_shape")
    ones = (1,) * len(kernel)
    strides, dilations = node.ints("strides", ones), node.ints("dilations", ones)
    result = node.emit(
        operator,
        to_channels_last(node, value),
        kernel_shape=kernel,
        strides=strides,
        pads=padding(node, kernel, strides, dilations),
        dilations=dilations,
        ceil_mode=node.flag("ceil_mode"),
        **properties,
    )
    return to_channels_first(node, result)


@onnx_operator("MaxPool")
def max_pool(node: Node) -> SSAValue:
    """The maximum of each window."""
    return pool(node, MaxPoolOp, node.input())


@onnx_operator("AveragePool")
def average_pool(node: Node) -> SSAValue:
    """The mean of each window."""
    return pool(node, AvgPoolOp, node.input(), count_include_pad=node.flag("count_include_pad"))


@onnx_operator("LpPool")
def lp_pool(node: Node) -> SSAValue:
    """The p-norm of each window."""
    return pool(node, LpPoolOp, node.input(), p=node.int("p", 2))

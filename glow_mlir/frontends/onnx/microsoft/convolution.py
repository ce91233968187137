"""onnxruntime's convolutions with a fused sum and activation, and its operators on channels-last images."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.pooling import MaxPoolOp
from glow_mlir.frontends.onnx.microsoft.activations import activated
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.convolution import conv, convolved
from glow_mlir.frontends.onnx.operators.pooling import pool
from glow_mlir.ir.registry import onnx_operator

ADDEND = 3
"""The position of the summand of a convolution."""


@onnx_operator("FusedConv", domain=ONNXRUNTIME)
def fused_conv(node: Node) -> SSAValue:
    """A convolution, an optional summand, and an optional activation."""
    result, addend = conv(node), node.optional(ADDEND)
    return activated(node, result if addend is None else node.emit(AddOp, result, addend))


@onnx_operator("NhwcFusedConv", domain=ONNXRUNTIME)
def nhwc_fused_conv(node: Node) -> SSAValue:
    """A fused convolution of channels-last images with channels-first filters."""
    result, addend = (
        convolved(node, node.input(0), node.input(1), node.optional(2), is_last=True),
        node.optional(ADDEND),
    )
    return activated(node, result if addend is None else node.emit(AddOp, result, addend))


@onnx_operator("NhwcMaxPool", domain=ONNXRUNTIME)
def nhwc_max_pool(node: Node) -> SSAValue:
    """The maximum of each window of channels-last images."""
    return pool(node, MaxPoolOp, node.input(), is_last=True)

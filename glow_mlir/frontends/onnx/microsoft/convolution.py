"""onnxruntime's convolutions with sums and activations built in."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.frontends.onnx.convolution import conv
from glow_mlir.frontends.onnx.microsoft.activations import activated
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator

ADDEND = 3
"""The position of what is added to the result of a convolution."""


@onnx_operator("FusedConv", domain=ONNXRUNTIME)
def fused_conv(node: Node) -> SSAValue:
    """A convolution, the sum with a value, and an activation."""
    result, addend = conv(node), node.optional(ADDEND)
    return activated(node, result if addend is None else node.emit(AddOp, result, addend))

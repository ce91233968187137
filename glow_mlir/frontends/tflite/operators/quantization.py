"""Operators between numbers and quantized values."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.rescaling import centred, rescaled


@tflite_operator("DEQUANTIZE")
def dequantize(node: TfliteNode) -> SSAValue:
    """The numbers that quantized values represent, or floats of 16 bits, as f32."""
    if node.tensor(0).dtype == "float16":
        return node.emit(CastOp, node.input(0), to=f32)
    return node.emit(DequantizeOp, node.quantized(0))


@tflite_operator("QUANTIZE")
def quantize(node: TfliteNode) -> SSAValue:
    """Quantized values of another scale or type."""
    if node.is_float():
        raise node.unsupported("of floats is not supported")
    scales = [node.quantization(tensor).scales.astype(np.float64) for tensor in (node.tensor(0), node.output())]
    return rescaled(node, centred(node, 0), scales[0] / scales[1])


@tflite_operator("DENSIFY")
def densify(node: TfliteNode) -> SSAValue:
    """A sparse constant in dense form, in which it is read."""
    return node.input(0)

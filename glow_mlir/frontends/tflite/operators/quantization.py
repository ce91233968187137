"""Operators between numbers and quantized values."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, DivOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.rescaling import centred, rescaled, rounded_away


@tflite_operator("DEQUANTIZE")
def dequantize(node: TfliteNode) -> SSAValue:
    """The numbers that quantized values represent, or floats of 16 bits, as f32."""
    if node.tensor(0).dtype == "float16":
        return node.emit(CastOp, node.input(0), to=f32)
    return node.emit(DequantizeOp, node.quantized(0))


@tflite_operator("QUANTIZE")
def quantize(node: TfliteNode) -> SSAValue:
    """Quantized values of floats, or of quantized values of another scale or type."""
    if node.is_float():
        return _of_floats(node)
    factor = node.scale(node.tensor(0)) / node.scale(node.output())
    return rescaled(node, centred(node, 0), np.array([factor]))


def _of_floats(node: TfliteNode) -> SSAValue:
    """Floats divided by the scale, with halves rounded away from zero."""
    out, dtype = node.quantization(node.output()), node.output().dtype
    value = node.input(0)
    ratio = node.emit(DivOp, value, node.splat(node.scale(node.output()), value))
    signed = rounded_away(node, ratio)
    moved = node.emit(AddOp, signed, node.splat(int(out.zero_points[0]), value))
    limits = node.limits(node.output())
    limited = node.emit(ClipOp, moved, *(node.splat(limit, value) for limit in limits))
    return node.emit(CastOp, limited, to=ELEMENT_TYPES[dtype])


@tflite_operator("DENSIFY")
def densify(node: TfliteNode) -> SSAValue:
    """A sparse constant in dense form, in which it is read."""
    return node.input(0)

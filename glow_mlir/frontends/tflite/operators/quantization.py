"""Operators between numbers and quantized values."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.rescaling import centred, rescaled, rounded_away


@tflite_operator("DEQUANTIZE")
def dequantize(node: TfliteNode) -> SSAValue:
    """The numbers that quantized values represent, or floats of 16 bits, as f32."""
    if node.tensor(0).dtype == "float16":
        return node.emit(CastOp, node.input(0), to=f32)
    if len(node.quantization(node.tensor(0)).scales) > 1:
        return _of_axis(node)
    return node.emit(DequantizeOp, node.quantized(0))


def _of_axis(node: TfliteNode) -> SSAValue:
    """The numbers of quantized values that have a scale and a zero point for each index of an axis."""
    found, shape = node.quantization(node.tensor(0)), node.shape(0)
    if not 0 <= found.axis < len(shape) or shape[found.axis] != len(found.scales):
        raise node.unsupported(f"{len(found.scales)} scales do not fit axis {found.axis} of {list(shape)}")
    form = (-1, *[1] * (len(shape) - found.axis - 1))
    zeros = node.constant(found.zero_points.astype(np.int32).reshape(form), f"{node.name}.zeros")
    scales = node.constant(found.scales.astype(np.float32).reshape(form), f"{node.name}.scales")
    whole = node.emit(SubOp, node.cast(node.input(0), i32), zeros)
    return node.emit(MulOp, node.cast(whole, f32), scales)


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

"""Conversions between floats and quantized elements, whose scale and zero point are part of their type."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype, storage_of
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, StorageCastOp
from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.dialects.shapes import element_of, rank_of
from glow_mlir.frontends.stablehlo.node import StablehloNode, stablehlo_operator


def parameters(node: StablehloNode, type_: UniformQuantizedType, rank: int) -> tuple[SSAValue, SSAValue]:
    """The scales and zero points of elements with parameters of their own for each index of an axis."""
    shape = [-1 if axis == type_.axis.data else 1 for axis in range(rank)]
    scales, zero_points = zip(*type_.quantization, strict=True)
    arrays = np.array(scales, numpy_dtype(type_.expressed)), np.array(zero_points, numpy_dtype(type_.storage))
    scale, zero_point = (node.constant(array.reshape(shape)) for array in arrays)
    return scale, zero_point


def quantized(node: StablehloNode, value: SSAValue, type_: UniformQuantizedType) -> SSAValue:
    """Floats as quantized elements."""
    value = node.cast(value, type_.expressed)
    if not type_.is_per_axis:
        return node.emit(QuantizeOp, value, to=type_)
    codes = node.emit(QuantizeOp, value, *parameters(node, type_, rank_of(value)), to=storage_of(type_))
    return node.emit(StorageCastOp, codes, to=type_)


def dequantized(node: StablehloNode, value: SSAValue) -> SSAValue:
    """The floats that quantized elements represent."""
    type_ = element_of(value)
    if not isinstance(type_, UniformQuantizedType):
        return value
    if not type_.is_per_axis:
        return node.emit(DequantizeOp, value)
    codes = node.emit(StorageCastOp, value, to=storage_of(type_))
    return node.emit(DequantizeOp, codes, *parameters(node, type_, rank_of(value)))


@stablehlo_operator("uniform_quantize")
def uniform_quantize(node: StablehloNode) -> SSAValue:
    """Floats, or quantized elements of another type, as quantized elements."""
    wanted = node.element()
    if not isinstance(wanted, UniformQuantizedType):
        raise node.unsupported(f"to {wanted} is not supported")
    return quantized(node, dequantized(node, node.input()), wanted)


@stablehlo_operator("uniform_dequantize")
def uniform_dequantize(node: StablehloNode) -> SSAValue:
    """The floats that quantized elements represent."""
    return dequantized(node, node.input())

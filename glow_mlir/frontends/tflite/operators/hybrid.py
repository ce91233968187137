"""Products of floats with weights of integers: rows of floats are quantized, each by its own largest number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import f32, f64, i8, i16, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    ClipOp,
    DivOp,
    GreaterOp,
    LessOp,
    MaxOp,
    MinOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMinOp
from glow_mlir.frontends.tflite.node import TfliteNode
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.factors import ordered
from glow_mlir.frontends.tflite.operators.rescaling import rounded_away
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class QuantizedRows:
    """Rows of i8, and for each row its scale, of f32, and its zero point, of i32, if there is one."""

    values: SSAValue
    scales: SSAValue
    zeros: SSAValue | None = None


def quantized_rows(node: TfliteNode, value: SSAValue, axes: Sequence[int], is_asymmetric: bool) -> QuantizedRows:
    """
    Floats as integers of 8 bits; rows lie along `axes`, which are kept with one element in scales and zero points.

    SymmetricQuantizeFloats and AsymmetricQuantizeFloats of TensorFlow Lite.
    """
    if is_asymmetric:
        return _asymmetric(node, value, axes)
    size = node.emit(ReduceMaxOp, node.emit(AbsOp, value), axes=axes, keepdims=True)
    is_some, most = node.emit(GreaterOp, size, node.splat(0, f32)), node.splat(127, f32)
    scale = node.emit(WhereOp, is_some, node.emit(DivOp, size, most), node.splat(1, f32))
    inverse = node.emit(WhereOp, is_some, node.emit(DivOp, most, size), node.splat(0, f32))
    whole = rounded_away(node, node.emit(MulOp, value, inverse))
    return QuantizedRows(node.cast(node.emit(ClipOp, whole, node.splat(-127, f32), most), i8), scale)


def _asymmetric(node: TfliteNode, value: SSAValue, axes: Sequence[int]) -> QuantizedRows:
    """Rows with a zero point, so that their smallest number becomes -128 and their largest one 127."""
    none = node.splat(0, f32)
    low, high = (
        node.cast(node.emit(limit, node.emit(fold, value, axes=axes, keepdims=True), none), f64)
        for limit, fold in ((MinOp, ReduceMinOp), (MaxOp, ReduceMaxOp))
    )
    span = node.emit(SubOp, high, low)
    is_some, one = node.emit(GreaterOp, span, node.splat(0, f64)), node.splat(1, f64)
    wide = node.emit(WhereOp, is_some, node.emit(DivOp, span, node.splat(255, f64)), one)
    least, most = node.splat(-128, f64), node.splat(127, f64)
    ratios = [node.emit(DivOp, limit, wide) for limit in (low, high)]
    errors = [
        node.emit(AddOp, node.emit(AbsOp, ratio), node.splat(limit, f64))
        for ratio, limit in zip(ratios, (128, 127), strict=True)
    ]
    points = [node.emit(SubOp, limit, ratio) for limit, ratio in zip((least, most), ratios, strict=True)]
    point = node.emit(WhereOp, node.emit(LessOp, *errors), *points)
    point = node.emit(ClipOp, rounded_away(node, point), least, most)
    point = node.emit(WhereOp, is_some, point, node.splat(0, f64))
    scale, offset = node.cast(wide, f32), node.cast(point, f32)
    scaled = node.emit(MulOp, value, node.emit(DivOp, node.splat(1, f32), scale))
    whole = rounded_away(node, node.emit(AddOp, offset, scaled))
    values = node.cast(node.emit(ClipOp, whole, node.splat(-128, f32), node.splat(127, f32)), i8)
    return QuantizedRows(values, scale, node.cast(point, i32))


def weight_scales(node: TfliteNode, position: int) -> np.ndarray:
    """The scales [1 or O] of weights of int8 or int4 without zero point."""
    tensor = node.tensor(position)
    found = node.quantization(tensor)
    if tensor.dtype not in ("int8", "int4") or found.zero_points.any():
        raise node.unsupported(f"weights of {tensor.dtype} for floats, or with a zero point, are not supported")
    return found.scales


def hybrid_product(node: TfliteNode, rows: SSAValue, position: int, is_asymmetric: bool) -> SSAValue:
    """A product, of f32, of rows of floats with weights [O, K], the operand at a position."""
    scales, weights = weight_scales(node, position), node.input(position)
    found = quantized_rows(node, rows, [-1], is_asymmetric)
    total = node.emit(MatMulOp, found.values, weights, transpose_right=True, to=i32)
    if found.zeros is not None:
        sums = node.known(position, "the weights").astype(np.int32).sum(1, dtype=np.int32)
        shift = node.emit(MulOp, found.zeros, node.constant(sums, f"{node.name}.sums"))
        total = node.emit(SubOp, total, shift)
    scale = node.emit(MulOp, found.scales, node.constant(scales.astype(np.float32), f"{node.name}.scales"))
    return node.emit(MulOp, node.cast(total, f32), scale)


def hybrid_convolution(node: TfliteNode, order: Sequence[int], form: Mapping[str, AttributeValue]) -> SSAValue:
    """A convolution of floats with filters of integers; each image is quantized by itself."""
    scales = weight_scales(node, 1)
    is_each = len(scales) > 1 or node.kind == "DEPTHWISE_CONV_2D"
    found = quantized_rows(node, node.input(0), [1, 2, 3], is_each)
    image = node.cast(found.values, i16)
    if found.zeros is not None:
        image = node.emit(SubOp, image, node.cast(found.zeros, i16))
    filters = node.cast(ordered(node, node.input(1), order), i16)
    total = node.cast(node.emit(ConvOp, image, filters, to=i32, **form), f32)
    scale = node.emit(MulOp, node.constant(scales.astype(np.float32), f"{node.name}.scales"), found.scales)
    value = node.emit(MulOp, total, scale)
    value = node.emit(AddOp, value, node.input(2)) if node.has(2) else value
    return activated(node, value, node.activation)

"""
Operators of onnxruntime on quantized values (domain com.microsoft): float operators between dequantization and
quantization.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import activations as act
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, StorageCastOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp
from glow_mlir.dialects.quant import uniform, zero_point_of
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of, size_of
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.pooling import pool
from glow_mlir.frontends.onnx.operators.quantization import (
    dequantized,
    dynamic_quantized,
    integer_product,
    known_type,
    quantized,
    quantized_convolution,
)
from glow_mlir.ir.registry import onnx_operator


def _requantized(node: Node, value: SSAValue, scale: int, code: int = 0) -> SSAValue:
    """
    Quantize a value to the element type of the operand at `code`.

    The scale is the operand at position `scale`, the zero point the next operand, if present.
    """
    return quantized(node, value, scale, scale + 1, node.element(code))


def _rounded_with_zero_point(node: Node, value: SSAValue, scale: int) -> SSAValue:
    """
    Quantize a value, rounding half to even after adding the zero point, as onnxruntime does.

    Quantization rounds before adding the zero point, which differs for halves if the zero point is odd. Then it uses
    the zero point minus 1, and a value that is one step larger. If the zero point is known at run time only, it is
    added to the quotient before rounding.
    """
    to = known_type(node, scale, scale + 1, node.element())
    if to is None and node.optional(scale + 1) is not None:
        quotient = node.emit(binary.DivOp, value, _plain(node, scale))
        index = node.emit(binary.AddOp, quotient, node.emit(CastOp, _plain(node, scale + 1), to=element_of(value)))
        return node.emit(QuantizeOp, index, node.constant(np.array(1, np.float32)), to=node.element())
    if to is None or not zero_point_of(to) % 2:
        return _requantized(node, value, scale)
    (step, zero), *_ = to.quantization
    raised = node.emit(binary.AddOp, value, node.constant(step, like=value))
    quantized_value = node.emit(QuantizeOp, raised, to=uniform(to.storage, to.expressed, step, zero - 1))
    return node.emit(StorageCastOp, quantized_value, to=node.element())


def _of_two(operator: type[HighOp]) -> Callable[[Node], SSAValue]:
    """Import a binary operator; operands are value, scale and zero point of each side, then the result's."""

    def emitted(node: Node) -> SSAValue:
        left, right = dequantized(node, 0, 1, 2), dequantized(node, 3, 4, 5)
        return _rounded_with_zero_point(node, node.emit(operator, left, right), 6)

    return emitted


for _name, _operator in {"QLinearAdd": binary.AddOp, "QLinearMul": binary.MulOp}.items():
    onnx_operator(_name, domain=ONNXRUNTIME)(_of_two(_operator))


@onnx_operator("QLinearSigmoid", domain=ONNXRUNTIME)
def qlinear_sigmoid(node: Node) -> SSAValue:
    """The quantized sigmoid."""
    return _requantized(node, node.emit(act.SigmoidOp, dequantized(node, 0, 1, 2)), 3)


@onnx_operator("QLinearLeakyRelu", domain=ONNXRUNTIME)
def qlinear_leaky_relu(node: Node) -> SSAValue:
    """The quantized leaky ReLU."""
    value = node.emit(act.LeakyReluOp, dequantized(node, 0, 1, 2), alpha=node.float("alpha", 0.01))
    return _requantized(node, value, 3)


@onnx_operator("QLinearSoftmax", domain=ONNXRUNTIME)
def qlinear_softmax(node: Node) -> SSAValue:
    """The quantized softmax along an axis, or, before opset 13 of ONNX, over that axis and all later ones."""
    value = dequantized(node, 0, 1, 2)
    shape, axis = shape_of(value), normalize_axis(node.int("axis", -1), rank_of(value))
    if node.int("opset") >= 13:
        return _requantized(node, node.emit(SoftmaxOp, value, axis=axis), 3)
    lines = node.emit(ReshapeOp, value, shape=(*shape[:axis], math.prod(shape[axis:])))
    result = node.emit(SoftmaxOp, lines, axis=axis)
    return _requantized(node, node.emit(ReshapeOp, result, shape=shape), 3)


@onnx_operator("QLinearConcat", domain=ONNXRUNTIME)
def qlinear_concat(node: Node) -> SSAValue:
    """
    Concatenate quantized operands.

    Operands are scale and zero point of the result, then value, scale and zero point of each part.
    """
    parts = [dequantized(node, first, first + 1, first + 2) for first in range(2, len(node.inputs), 3)]
    if not parts:
        raise node.unsupported("no operands to concatenate")
    axis = normalize_axis(node.int("axis"), rank_of(parts[0]))
    return quantized(node, node.emit(ConcatOp, parts, axis=axis), 0, 1, node.element(2))


@onnx_operator("QLinearWhere", domain=ONNXRUNTIME)
def qlinear_where(node: Node) -> SSAValue:
    """Select the elements of one quantized operand where a condition holds, else those of another."""
    value = node.emit(binary.WhereOp, node.input(0), dequantized(node, 1, 2, 3), dequantized(node, 4, 5, 6))
    return _requantized(node, value, 7, 1)


@onnx_operator("QLinearAveragePool", domain=ONNXRUNTIME)
def qlinear_average_pool(node: Node) -> SSAValue:
    """The quantized mean of each window."""
    includes_pads, is_last = node.flag("count_include_pad"), node.flag("channels_last")
    result = pool(node, AvgPoolOp, dequantized(node, 0, 1, 2), is_last=is_last, count_include_pad=includes_pads)
    return _rounded_with_zero_point(node, result, 3)


@onnx_operator("QLinearGlobalAveragePool", domain=ONNXRUNTIME)
def qlinear_global_average_pool(node: Node) -> SSAValue:
    """The quantized mean of each channel."""
    value = dequantized(node, 0, 1, 2)
    rank, is_last = rank_of(value), node.flag("channels_last")
    axes = range(1, rank - 1) if is_last else range(2, rank)
    return _requantized(node, node.emit(ReduceMeanOp, value, axes=list(axes), keepdims=True), 3)


@onnx_operator("QLinearReduceMean", domain=ONNXRUNTIME)
def qlinear_reduce_mean(node: Node) -> SSAValue:
    """The quantized mean along some axes, or along all."""
    value = dequantized(node, 0, 1, 2)
    rank = rank_of(value)
    axes = [normalize_axis(axis, rank) for axis in node.ints("axes", range(rank))]
    return _requantized(node, node.emit(ReduceMeanOp, value, axes=axes, keepdims=node.flag("keepdims", True)), 3)


@onnx_operator("QLinearConv", domain=ONNXRUNTIME)
def qlinear_conv(node: Node) -> SSAValue:
    """ONNX's QLinearConv, with `channels_last` as an option."""
    return quantized_convolution(node, is_last=node.flag("channels_last"))


# ---- products -----------------------------------------------------------------------------------------------------


@onnx_operator("QGemm", domain=ONNXRUNTIME)
def qgemm(node: Node) -> SSAValue:
    """
    A product of quantized matrices, plus a bias quantized in the scale of the accumulators.

    The result is a float if it has no scale.
    """
    is_turned, alpha, bias = node.flag("transB"), node.float("alpha", 1.0), node.optional(6)
    left, right = dequantized(node, 0, 1, 2), _by_column(node, 3, is_turned)
    if node.flag("transA"):
        left = node.emit(TransposeOp, left, permutation=(1, 0))
    result = node.emit(MatMulOp, left, right, transpose_right=is_turned)
    if bias is not None:
        scale = node.emit(binary.MulOp, _plain(node, 1), _plain(node, 4))
        result = node.emit(binary.AddOp, result, node.emit(DequantizeOp, bias, scale))
    if alpha != 1.0:
        result = node.emit(binary.MulOp, result, node.constant(alpha, like=result))
    return result if node.optional(7) is None else _requantized(node, result, 7)


@onnx_operator("MatMulIntegerToFloat", domain=ONNXRUNTIME)
def matmul_integer_to_float(node: Node) -> SSAValue:
    """The dequantized product of quantized matrices, plus a bias."""
    sums = integer_product(node, node.input(0), node.input(1), node.optional(4), node.optional(5))
    return _scaled(node, sums, _plain(node, 2), _plain(node, 3), 6)


@onnx_operator("DynamicQuantizeMatMul", domain=ONNXRUNTIME)
def dynamic_quantize_matmul(node: Node) -> SSAValue:
    """A product of floats, quantized by their range, with a quantized matrix; plus a bias."""
    quantized_value, scale, zero_point = dynamic_quantized(node, node.input(0))
    sums = integer_product(node, quantized_value, node.input(1), zero_point, node.optional(3))
    return _scaled(node, sums, scale, _plain(node, 2), 4)


def _scaled(node: Node, sums: SSAValue, left: SSAValue, right: SSAValue, bias: int) -> SSAValue:
    """
    Dequantize accumulators by the scales of both operands, and add the operand at position `bias`, if present.
    """
    result = node.emit(DequantizeOp, sums, node.emit(binary.MulOp, left, right))
    addend = node.optional(bias)
    return result if addend is None else node.emit(binary.AddOp, result, addend)


def _plain(node: Node, position: int) -> SSAValue:
    """A scale or zero point: a scalar, or a vector with one for each column."""
    value = node.input(position)
    return node.emit(ReshapeOp, value, shape=()) if shape_of(value) == (1,) else value


def _by_column(node: Node, code: int, is_turned: bool) -> SSAValue:
    """Dequantize a matrix with scales and zero points per column, or per row if `is_turned`."""
    count = size_of(node.input(code + 1))
    if count == 1:
        return dequantized(node, code, code + 1, code + 2)
    operands = [node.optional(position) for position in (code + 1, code + 2)]
    shape = (count, 1) if is_turned else (count,)
    shaped = [None if value is None else node.emit(ReshapeOp, value, shape=shape) for value in operands]
    return node.emit(DequantizeOp, node.input(code), *shaped)

"""Convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.rescaling import rescaled
from glow_mlir.support.symbols import product_of, quotient

SAME = 0
"""The number of the padding that gives a result of ⌈size / stride⌉."""


def same_pads(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """The paddings of spatial axes, all leading ones first, for results of ⌈size / stride⌉."""
    before, after = list[int](), list[int]()
    for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        reach = (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1
        missing = max(reach - size, 0)
        before.append(missing // 2)
        after.append(missing - missing // 2)
    return [*before, *after]


@tflite_operator("CONV_2D")
def conv_2d(node: TfliteNode) -> SSAValue:
    """A convolution of [N, H, W, C] with filters [O, kernel…, C / groups]."""
    depth = node.image(1)[3]
    groups = node.image(0)[3] // depth if depth else 1
    return _convolved(node, node.input(1), node.image(1)[1:3], [node.step(field) for field in (5, 4)], groups)


@tflite_operator("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(node: TfliteNode) -> SSAValue:
    """A convolution of each channel with filters of its own, [1, kernel…, C · multiplier]."""
    filters = node.emit(TransposeOp, node.input(1), permutation=(3, 1, 2, 0))
    return _convolved(node, filters, node.image(1)[1:3], [node.step(field) for field in (6, 5)], node.image(0)[3])


def _convolved(
    node: TfliteNode, filters: SSAValue, kernel: Sequence[int], dilations: Sequence[int], groups: int
) -> SSAValue:
    strides = [node.step(field) for field in (2, 1)]
    is_same = node.options.number(0, "b") == SAME
    pads = same_pads(node.image(0)[1:3], kernel, strides, dilations) if is_same else [0] * 4
    form = {"strides": strides, "pads": pads, "dilations": dilations, "group": groups}
    bias = node.input(2) if node.has(2) else None
    if node.is_float():
        if not node.is_float(1):
            raise node.unsupported("filters of integers for floats are not supported")
        return activated(node, node.emit(ConvOp, node.input(0), filters, bias, **form), node.activation)
    _check_weights(node)
    accumulators = node.emit(ConvOp, node.quantized(0), filters, bias, to=i32, **form)
    return rescaled(node, accumulators, _factors(node), node.activation)


def _check_weights(node: TfliteNode) -> None:
    """Raise `UnsupportedError` for operands that are not int8, or weights with zero points other than 0."""
    if node.tensor(0).dtype != "int8" or node.tensor(1).dtype != "int8":
        raise node.unsupported(f"products of {node.tensor(0).dtype} with {node.tensor(1).dtype} are not supported")
    if node.quantization(node.tensor(1)).zero_points.any():
        raise node.unsupported("weights have a zero point")


def _factors(node: TfliteNode) -> np.ndarray:
    """The factors [1 or O] of f64 from accumulators to quantized values of the result."""
    left, right, out = (
        node.quantization(tensor).scales.astype(np.float64)
        for tensor in (node.tensor(0), node.tensor(1), node.output())
    )
    if not out.all():
        raise node.unsupported("the result has the scale 0")
    return left * right / out


WEIGHTS_FIELD = 1
"""The field of the options of FULLY_CONNECTED that has the order of weights, which is 0 for [O, K]."""


@tflite_operator("FULLY_CONNECTED")
def fully_connected(node: TfliteNode) -> SSAValue:
    """A product of rows with weights [O, K]; leading axes are merged, or kept with `keep_num_dims`."""
    if len(node.shape(1)) != 2:
        raise node.unsupported(f"weights of the shape {list(node.shape(1))} are no matrix")
    if node.options.number(WEIGHTS_FIELD, "b"):
        raise node.unsupported("weights in another order are not supported")
    rows = _rows(node, node.shape(1)[1])
    bias = node.input(2) if node.has(2) else None
    if node.is_float():
        if not node.is_float(1):
            raise node.unsupported("weights of integers for floats are not supported")
        found = activated(node, node.emit(MatMulOp, rows, node.input(1), bias, transpose_right=True), node.activation)
    else:
        _check_weights(node)
        accumulators = node.emit(MatMulOp, rows, node.input(1), bias, transpose_right=True, to=i32)
        found = rescaled(node, accumulators, _product_factors(node), node.activation, rounding="once")
    return node.emit(ReshapeOp, found, shape=node.output().shape)


def _rows(node: TfliteNode, depth: int) -> SSAValue:
    """The first operand as a matrix of rows of `depth` elements."""
    value = node.input(0) if node.is_float() else node.quantized(0)
    rows = quotient(product_of(node.shape(0)), depth)
    if not depth or rows is None:
        raise node.unsupported(f"an operand of the shape {list(node.shape(0))} has no rows of {depth}")
    return node.emit(ReshapeOp, value, shape=(rows, depth))


def _product_factors(node: TfliteNode) -> np.ndarray:
    """Like `_factors`, but the product of single scales is rounded to f32, as the reference kernel does."""
    scales = [node.quantization(tensor).scales for tensor in (node.tensor(0), node.tensor(1), node.output())]
    if len(scales[1]) > 1 or not scales[2].all():
        return _factors(node)
    return (scales[0] * scales[1]).astype(np.float64) / scales[2].astype(np.float64)

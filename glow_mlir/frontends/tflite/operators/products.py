"""Convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.factors import Factors, ordered
from glow_mlir.frontends.tflite.operators.hybrid import hybrid_convolution, hybrid_product
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
    return _convolved(node, (0, 1, 2, 3), [node.step(field) for field in (5, 4)], groups)


@tflite_operator("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(node: TfliteNode) -> SSAValue:
    """A convolution of each channel with filters of its own, [1, kernel…, C · multiplier]."""
    return _convolved(node, (3, 1, 2, 0), [node.step(field) for field in (6, 5)], node.image(0)[3])


def _convolved(node: TfliteNode, order: Sequence[int], dilations: Sequence[int], groups: int) -> SSAValue:
    strides, kernel = [node.step(field) for field in (2, 1)], node.image(1)[1:3]
    is_same = node.options.number(0, "b") == SAME
    pads = same_pads(node.image(0)[1:3], kernel, strides, dilations) if is_same else [0] * 4
    form = {"strides": strides, "pads": pads, "dilations": dilations, "group": groups}
    if node.is_float() and not node.is_float(1):
        return hybrid_convolution(node, order, form)
    if node.is_float():
        bias = node.input(2) if node.has(2) else None
        filters = ordered(node, node.input(1), order)
        return activated(node, node.emit(ConvOp, node.input(0), filters, bias, **form), node.activation)
    factors = Factors.of(node, 0, 1, 2)
    filters = ordered(node, factors.right, order)
    found = node.emit(ConvOp, factors.left, filters, factors.bias, to=factors.accumulator, **form)
    return rescaled(node, found, factors.scales, node.activation, factors.rounding)


@tflite_operator("TRANSPOSE_CONV")
def transpose_conv(node: TfliteNode) -> SSAValue:
    """The transposed convolution of [N, H, W, C], the third operand, with filters [O, kernel…, C]."""
    strides, kernel, sizes = [node.step(field) for field in (2, 1)], node.image(1)[1:3], node.output().shape[1:3]
    if len(node.output().shape) != 4:
        raise node.unsupported(f"has a result of the shape {list(node.output().shape)}, without four axes")
    is_same = node.options.number(0, "b") == SAME
    pads = same_pads(sizes, kernel, strides, (1, 1))[:2] if is_same else [0, 0]
    spans = [
        (size - 1) * stride + width for size, stride, width in zip(node.image(2)[1:3], strides, kernel, strict=True)
    ]
    behind = [span - before - size for span, before, size in zip(spans, pads, sizes, strict=True)]
    form = {
        "strides": strides,
        "pads": [*pads, *(max(0, item) for item in behind)],
        "output_padding": [max(0, -item) for item in behind],
    }
    if node.is_float(2):
        bias, filters = node.input(3) if node.has(3) else None, ordered(node, node.input(1), (3, 1, 2, 0))
        return activated(node, node.emit(ConvTransposeOp, node.input(2), filters, bias, **form), node.activation)
    factors = Factors.of(node, 2, 1, 3)
    value, filters = (factors.widened(node, position) for position in (2, 1))
    found = node.emit(ConvTransposeOp, value, ordered(node, filters, (3, 1, 2, 0)), factors.bias, **form)
    return rescaled(node, found, factors.scales, node.activation, factors.rounding)


WEIGHTS_FIELD = 1
"""The field of the options of FULLY_CONNECTED that has the order of weights, which is 0 for [O, K]."""

ASYMMETRIC_FIELD = 3
"""The field that says whether rows of floats get a zero point before they are multiplied with weights of integers."""


@tflite_operator("FULLY_CONNECTED")
def fully_connected(node: TfliteNode) -> SSAValue:
    """A product of rows with weights [O, K]; leading axes are merged, or kept with `keep_num_dims`."""
    if len(node.shape(1)) != 2:
        raise node.unsupported(f"weights of the shape {list(node.shape(1))} are no matrix")
    if node.options.number(WEIGHTS_FIELD, "b"):
        raise node.unsupported("weights in another order are not supported")
    depth = node.shape(1)[1]
    if node.is_float() and not node.is_float(1):
        rows = _rows(node, node.input(0), depth)
        product = hybrid_product(node, rows, 1, bool(node.options.number(ASYMMETRIC_FIELD, "?")))
        found = activated(node, node.emit(AddOp, product, node.input(2)) if node.has(2) else product, node.activation)
    elif node.is_float():
        bias, rows = node.input(2) if node.has(2) else None, _rows(node, node.input(0), depth)
        product = node.emit(MatMulOp, rows, node.input(1), bias, transpose_right=True)
        found = activated(node, product, node.activation)
    else:
        factors = Factors.of(node, 0, 1, 2)
        rows = _rows(node, factors.left, depth)
        form = {"transpose_right": True, "to": factors.accumulator}
        product = node.emit(MatMulOp, rows, factors.right, factors.bias, **form)
        rounding = "once" if node.tensor(0).dtype == "int8" else factors.rounding
        found = rescaled(node, product, factors.scales, node.activation, rounding)
    return node.emit(ReshapeOp, found, shape=node.output().shape)


def _rows(node: TfliteNode, value: SSAValue, depth: int) -> SSAValue:
    """The first operand as a matrix of rows of `depth` elements."""
    rows = quotient(product_of(node.shape(0)), depth)
    if not depth or rows is None:
        raise node.unsupported(f"an operand of the shape {list(node.shape(0))} has no rows of {depth}")
    return node.emit(ReshapeOp, value, shape=(rows, depth))


@tflite_operator("BATCH_MATMUL")
def batch_matmul(node: TfliteNode) -> SSAValue:
    """Products of matrices, of which each operand may be transposed; leading axes broadcast."""
    form = {"transpose_left": bool(node.options.number(0, "?")), "transpose_right": bool(node.options.number(1, "?"))}
    if node.is_float() and node.is_float(1):
        return node.emit(MatMulOp, node.input(0), node.input(1), **form)
    if node.is_float() or (not node.is_float(1) and node.tensor(0).dtype != node.tensor(1).dtype):
        raise node.unsupported(f"of {node.tensor(0).dtype} with {node.tensor(1).dtype} is not supported")
    factors = Factors.of(node, 0, 1, None)
    product = node.emit(MatMulOp, factors.left, factors.right, to=factors.accumulator, **form)
    return rescaled(node, product, factors.scales, rounding=factors.rounding)

"""ONNX's quantization: linear with known or run-time parameters, and products of integers."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.dialects.builtin import IntegerType, f32, f64, i8, i32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.constants.signed_weights import signed_weights
from glow_mlir.dialects.element_types import (
    byte_width,
    is_float,
    is_integer,
    is_narrow_float,
    is_narrow_integer,
    is_unsigned,
    ui8,
)
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, PadOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    ClipOp,
    DivOp,
    EqualOp,
    LessOp,
    MaxOp,
    MinOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, NegOp, RoundOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, StorageCastOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceMinOp, ReduceSumOp
from glow_mlir.dialects.quant import UniformQuantizedType, integer_bounds, uniform
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.builder.products import numpy_product
from glow_mlir.frontends.builder.zero_point_sums import MIN_COLUMNS, row_sums, window_sums
from glow_mlir.frontends.onnx.models.types import element_of_onnx
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.blockwise import numbers_of_blocks
from glow_mlir.frontends.onnx.operators.convolution import convolved
from glow_mlir.frontends.onnx.operators.elementwise import converted
from glow_mlir.frontends.onnx.operators.spatial import padding
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Sizes


@onnx_operator("QuantizeLinear", since=10)
def quantize_linear(node: Node) -> SSAValue:
    """Quantize floats; known parameters become part of the quantized type, others are operands."""
    zero_point = node.optional(2)
    element = ui8 if zero_point is None else element_of(zero_point)
    if kind := node.int("output_dtype", 0):
        element = element_of_onnx(kind, "the result of QuantizeLinear")
    _check_quantized(node, element)
    return quantized(node, node.input(0), 1, 2, element)


@onnx_operator("DequantizeLinear", since=10)
def dequantize_linear(node: Node) -> SSAValue:
    """Dequantize to floats."""
    _check_quantized(node, node.element(0))
    result = numbers_of_blocks(node)
    if result is None:
        result = dequantized(node, 0, 1, 2)
    kind = node.int("output_dtype", 0)
    return node.emit(CastOp, result, to=element_of_onnx(kind, "the result of DequantizeLinear")) if kind else result


def quantized(
    node: Node, value: SSAValue, scale: int, zero_point: int, element: Attribute, axis: int | None = None
) -> SSAValue:
    """
    Quantize a value to integers or narrow floats of type `element`; `scale` and `zero_point` are operand positions.

    If they are vectors, they belong to `axis`, by default the node's attribute.
    """
    if is_narrow_float(element):
        return _rounded(node, value, scale, zero_point, element, axis)
    whole = _in_bytes(element)
    known = known_type(node, scale, zero_point, whole)
    if known is not None:
        quantized_value = node.emit(StorageCastOp, node.emit(QuantizeOp, value, to=known), to=whole)
    else:
        quantized_value = node.emit(
            QuantizeOp, value, *_operands(node, sizes_of(value), axis, scale, zero_point), to=whole
        )
    if whole == element:
        return quantized_value
    limits = [node.constant(bound, like=quantized_value) for bound in integer_bounds(cast("IntegerType", element))]
    return node.emit(CastOp, node.emit(ClipOp, quantized_value, *limits), to=element)


def dequantized(node: Node, code: int, scale: int, zero_point: int, axis: int | None = None) -> SSAValue:
    """Dequantize the operand at position `code`; `scale`, `zero_point` and `axis` are as for `quantized`."""
    value = node.input(code)
    if is_narrow_float(element_of(value)):
        return _scaled(node, value, scale, zero_point, axis)
    value = _as_computed(node, value)
    known = known_type(node, scale, zero_point, element_of(value))
    if known is not None:
        return node.emit(DequantizeOp, node.emit(StorageCastOp, value, to=known))
    return node.emit(DequantizeOp, value, *_operands(node, sizes_of(value), axis, scale, zero_point))


def _rounded(
    node: Node, value: SSAValue, scale: int, zero_point: int, element: Attribute, axis: int | None
) -> SSAValue:
    """Quantize to narrow floats: divide by the scale, add the zero point, and convert."""
    ratio, offset = _operands(node, sizes_of(value), axis, scale, zero_point)
    assert ratio is not None
    computed = f64 if f64 in (element_of(value), element_of(ratio)) else f32
    number = node.emit(DivOp, *(node.cast(operand, computed) for operand in (value, ratio)))
    if offset is not None and not _is_zero(node, zero_point):
        number = node.emit(AddOp, number, node.cast(offset, computed))
    return converted(node, number, element)


def _scaled(node: Node, value: SSAValue, scale: int, zero_point: int, axis: int | None) -> SSAValue:
    """Dequantize narrow floats: subtract the zero point, and multiply by the scale."""
    ratio, offset = _operands(node, sizes_of(value), axis, scale, zero_point)
    assert ratio is not None
    number = node.emit(CastOp, value, to=f32)
    if offset is not None and not _is_zero(node, zero_point):
        number = node.emit(SubOp, number, node.cast(offset, f32))
    return node.cast(node.emit(MulOp, number, node.cast(ratio, f32)), element_of(ratio))


def _is_zero(node: Node, position: int) -> bool:
    """Whether an operand is known to be 0."""
    known = node.known(position)
    return known is not None and not known.astype(np.float32).any()


def _in_bytes(element: Attribute) -> Attribute:
    """The 8-bit type in which a narrower integer type is computed; any other type itself."""
    if not is_narrow_integer(element):
        return element
    return ui8 if is_unsigned(element) else i8


def _as_computed(node: Node, value: SSAValue) -> SSAValue:
    """Convert an operand to the type used in computation: narrow integers to bytes, narrow floats to f32."""
    element = element_of(value)
    return node.cast(value, f32 if is_narrow_float(element) else _in_bytes(element))


def _check_quantized(node: Node, element: Attribute) -> None:
    if not is_integer(_in_bytes(element)) and not is_narrow_float(element):
        raise node.unsupported(f"quantized values of type {element} are not supported")


def known_type(node: Node, scale: int, zero_point: int, element: Attribute) -> UniformQuantizedType | None:
    """The quantized type if there is a single scale and zero point, both constant; else `None`."""
    number, offset = node.known(scale), node.known(zero_point)
    if number is None or number.size != 1 or (offset is None) != (node.optional(zero_point) is None):
        return None
    if offset is not None and offset.size != 1:
        reason = f"{node.kind}: {offset.size} zero points do not fit one scale"
        raise ModelError(reason, node=node.name, hint="expected one zero point for each scale")
    if not is_integer(element):
        raise node.unsupported(f"quantized values of type {element} are not supported")
    ratio, zero = float(number.reshape(())), 0 if offset is None else int(offset.reshape(()))
    is_scale = 0 < ratio < np.inf and byte_width(element) in (1, 2, 4)
    expressed = element_of(node.input(scale))
    return uniform(element, expressed if is_float(expressed) else f32, ratio, zero) if is_scale else None


def _operands(node: Node, sizes: Sizes, axis: int | None, scale: int, zero_point: int) -> list[SSAValue | None]:
    """Scale and zero point, reshaped to broadcast with a tensor of `sizes`."""
    if axis is None:
        axis = node.int("axis", 1 if len(sizes) > 1 else 0)
    present = ((position, node.optional(position)) for position in (scale, zero_point))
    return [None if value is None else _spread(node, position, sizes, axis) for position, value in present]


def _spread(node: Node, position: int, sizes: Sizes, axis: int) -> SSAValue:
    """Reshape a parameter given per tensor, per index of an axis, or per block of `block_size` along the axis."""
    value = _as_computed(node, node.input(position))
    given = sizes_of(value)
    if given in ((), (1,)):
        return node.emit(ReshapeOp, value, shape=()) if given else value
    axis, block = normalize_axis(axis, len(sizes)), node.int("block_size", 0)
    if not block and len(given) == len(sizes) > 1:
        return value
    if not block:
        line = [size if index == axis else 1 for index, size in enumerate(sizes)]
        return node.emit(ReshapeOp, value, shape=line)
    if block < 0 or len(given) != len(sizes):
        reason = f"{node.kind}: parameters of shape {given} do not match blocks of {block} in {sizes}"
        raise ModelError(reason, node=node.name, hint="expected the same rank, with one element for each block")
    before, after = given[:axis], given[axis + 1 :]
    single = node.emit(ReshapeOp, value, shape=(*before, given[axis], 1, *after))
    repeated = node.emit(ExpandOp, single, shape=(*before, given[axis], block, *after))
    joined = node.emit(ReshapeOp, repeated, shape=(*before, given[axis] * block, *after))
    if given[axis] * block == sizes[axis]:
        return joined
    return node.emit(SliceOp, joined, starts=[0] * len(sizes), ends=sizes, steps=[1] * len(sizes))


# ---- products -----------------------------------------------------------------------------------------------------


@onnx_operator("MatMulInteger", since=10)
def matmul_integer(node: Node) -> SSAValue:
    """The i32 product of quantized operands, from which zero points are subtracted first."""
    return integer_product(node, node.input(0), node.input(1), node.optional(2), node.optional(3))


def integer_product(
    node: Node, left: SSAValue, right: SSAValue, left_zero: SSAValue | None, right_zero: SSAValue | None
) -> SSAValue:
    """The i32 product of quantized values, from which zero points are subtracted first."""
    right, right_zero = _signed(node, right, right_zero)
    first, second = _centred(node, left, left_zero), _centred(node, right, right_zero)
    if first is not None and second is not None:
        return numpy_product(node, first, second)
    if min(rank_of(left), rank_of(right)) < 2:
        raise node.unsupported("vectors need one constant zero point")
    # (A - a) · (B - b) = A · B - a · ΣB - ΣA · b + K · a · b, so that the product keeps narrow operands.
    result = node.emit(MatMulOp, left, right)
    a, b = _as_i32(node, left_zero, (-1, 1)), _as_i32(node, right_zero, (-1,))
    if a is not None:
        result = node.emit(SubOp, result, node.emit(MulOp, a, _total(node, right, -2)))
    if b is not None:
        result = node.emit(SubOp, result, node.emit(MulOp, row_sums(left, False, node), b))
    if a is not None and b is not None:
        depth = node.constant(shape_of(right)[-2], like=a)
        result = node.emit(AddOp, result, node.emit(MulOp, depth, node.emit(MulOp, a, b)))
    return result


def _signed(node: Node, right: SSAValue, zero: SSAValue | None) -> tuple[SSAValue, SSAValue | None]:
    """A constant right operand of u8 with its constant zero point as one of i8, whose products are faster."""
    weights = node.fold(right) if element_of(right) == ui8 and _is_wide(right) else None
    offset = np.zeros((), np.uint8) if zero is None else node.fold(zero)
    if weights is None or offset is None:
        return right, zero
    signed, less = signed_weights(weights, offset)
    return node.constant(signed), node.constant(less.astype(np.int8)) if less.any() else None


def _is_wide(right: SSAValue) -> bool:
    """Whether a right operand has so many columns that sums of the rows of the left operand are cheap."""
    return rank_of(right) > 1 and largest(sizes_of(right)[-1]) >= MIN_COLUMNS


def _as_i32(node: Node, value: SSAValue | None, line: tuple[int, ...]) -> SSAValue | None:
    """A zero point as i32; a vector gets the shape `line`, with its size in place of -1. `None` if absent."""
    if value is None:
        return None
    wide, shape = node.emit(CastOp, value, to=i32), shape_of(value)
    if len(shape) != 1:
        return wide
    return node.emit(ReshapeOp, wide, shape=[shape[0] if size == -1 else size for size in line] if shape[0] > 1 else ())


def _total(node: Node, value: SSAValue, axis: int) -> SSAValue:
    """The i32 sum of quantized values along an axis of matrices, kept with size 1."""
    wide = node.emit(CastOp, value, to=i32)
    return node.emit(ReduceSumOp, wide, axes=[rank_of(value) + axis], keepdims=True)


@onnx_operator("ConvInteger", since=10)
def conv_integer(node: Node) -> SSAValue:
    """The i32 convolution of quantized operands, from which zero points are subtracted first; channels-last inside."""
    image, filter_ = (_centred(node, node.input(i), node.optional(i + 2)) for i in (0, 1))
    if image is not None and filter_ is not None:
        return convolved(node, image, filter_, None)
    weights, offset = node.known(1), np.zeros((), np.int8) if node.optional(3) is None else node.known(3)
    if weights is not None and offset is not None and weights.shape[1] > 1:
        return _corrected_convolution(node, weights, offset)
    lines = (), (-1, *[1] * (node.rank(1) - 1))
    image, filter_ = (_less(node, position, line) for position, line in enumerate(lines))
    return convolved(node, image, filter_, None)


def _corrected_convolution(node: Node, weights: np.ndarray, offset: np.ndarray) -> SSAValue:
    """
    The convolution of narrow values with constant filters, from which the zero points' parts of the sums are
    subtracted: those of the image times the sums of filters, and those of the filters times sums of windows.
    """
    kernel, ones = weights.shape[2:], (1,) * len(weights.shape[2:])
    strides, dilations, groups = node.ints("strides", ones), node.ints("dilations", ones), node.int("group", 1)
    filters, zeros = signed_weights(
        weights, offset.reshape(-1, *[1] * (weights.ndim - 1)) if offset.size > 1 else offset
    )
    image, image_zero = to_channels_last(node, node.input(0)), node.optional(2)
    pads = padding(node, kernel, strides, dilations)
    if any(pads):
        before, after = pads[: len(kernel)], pads[len(kernel) :]
        image = node.emit(PadOp, image, _scalar(node, image_zero), pads=(0, *before, 0, 0, *after, 0))
    result = convolved(node, image, node.constant(filters), None, is_last=True, pads=(0,) * len(pads))
    axes = tuple(range(1, weights.ndim))
    if image_zero is not None:
        less = (filters.astype(np.int32) - zeros).sum(axis=axes, dtype=np.int32)
        own = node.emit(CastOp, _scalar(node, image_zero), to=i32)
        result = node.emit(SubOp, result, node.emit(MulOp, own, node.constant(less)))
    if zeros.any():
        sums = window_sums(image, kernel, strides, dilations, len(filters), groups, node)
        result = node.emit(SubOp, result, node.emit(MulOp, sums, node.constant(zeros.reshape(-1).astype(np.int32))))
    return to_channels_first(node, result)


def _scalar(node: Node, zero: SSAValue | None) -> SSAValue | None:
    """A zero point as a scalar."""
    return zero if zero is None or shape_of(zero) == () else node.emit(ReshapeOp, zero, shape=())


def _less(node: Node, position: int, line: tuple[int, ...]) -> SSAValue:
    """Quantized values minus their zero point, as i32."""
    wide, zero_point = node.emit(CastOp, node.input(position), to=i32), _as_i32(node, node.optional(position + 2), line)
    return wide if zero_point is None else node.emit(SubOp, wide, zero_point)


ROWS, COLUMNS = -2, -1
"""The axes of matrices."""


@onnx_operator("QLinearMatMul", since=10)
def qlinear_matmul(node: Node) -> SSAValue:
    """The quantized product of dequantized operands; a vector is a matrix of one row or column, as in MatMul."""
    product = numpy_product(node, dequantized(node, 0, 1, 2, ROWS), dequantized(node, 3, 4, 5, COLUMNS))
    return quantized(node, product, 6, 7, node.element(7), ROWS)


@onnx_operator("QLinearConv", since=10)
def qlinear_conv(node: Node) -> SSAValue:
    """The quantized convolution of channels-first images."""
    return quantized_convolution(node)


def quantized_convolution(node: Node, is_last: bool = False) -> SSAValue:
    """Convolve dequantized operands, and quantize the result; the bias has the scale of the accumulators."""
    bias = node.optional(8)
    if bias is not None:
        scale = node.emit(MulOp, node.input(1), node.input(4))
        bias = node.emit(DequantizeOp, bias, scale)
    filter_ = node.emit(DequantizeOp, node.input(3), *_per_filter(node))
    result = convolved(node, dequantized(node, 0, 1, 2), filter_, bias, weights=3, is_last=is_last)
    return quantized(node, result, 6, 7, node.element(7))


def _per_filter(node: Node) -> list[SSAValue | None]:
    """Scale and zero point of the weights of QLinearConv: one, or one for each filter."""
    found: list[SSAValue | None] = []
    for position in (4, 5):
        value = node.input(position)
        line = (shape_of(value)[0], *[1] * (node.rank(3) - 1)) if shape_of(value) != () else ()
        found.append(node.emit(ReshapeOp, value, shape=line) if line else value)
    return found


def _centred(node: Node, value: SSAValue, zero_point: SSAValue | None) -> SSAValue | None:
    """Quantized values minus a single constant zero point; `None` for any other zero point."""
    known = None if zero_point is None else node.fold(zero_point)
    if zero_point is None or (known is not None and not known.any()):
        return value
    if known is None or known.size != 1:
        return None
    return node.emit(StorageCastOp, value, to=uniform(element_of(value), f32, 1.0, int(known.reshape(()))))


@onnx_operator("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: Node) -> list[SSAValue]:
    """Quantize to u8 by the range of values; the results are quantized values, scale and zero point."""
    return list(dynamic_quantized(node, node.input(0)))


def dynamic_quantized(node: Node, value: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """
    Quantize to u8 by the range of values, extended to include 0; returns quantized values, scale and zero point.

    If all values are 0, the scale is 1, as in onnxruntime; the standard's scale of 0 could not be divided by. The zero
    point is then 0. It is 255 if the range is so small or large that the standard's formula gives NaN.
    """
    axes, zero = list(range(rank_of(value))), node.constant(0.0, like=value)
    least = node.emit(MinOp, node.emit(ReduceMinOp, value, axes=axes, keepdims=False), zero)
    most = node.emit(MaxOp, node.emit(ReduceMaxOp, value, axes=axes, keepdims=False), zero)
    steps, extent = node.constant(255.0, like=value), node.emit(SubOp, most, least)
    is_point = node.emit(EqualOp, extent, zero)
    scale = node.emit(WhereOp, is_point, node.constant(1.0, like=value), node.emit(DivOp, extent, steps))
    index = node.emit(DivOp, node.emit(NegOp, least), scale)
    # If the quotient is NaN, the comparison is false.
    limited = node.emit(MaxOp, node.emit(WhereOp, node.emit(LessOp, index, steps), index, steps), zero)
    zero_point = node.emit(CastOp, node.emit(RoundOp, limited), to=ui8)
    return node.emit(QuantizeOp, value, scale, zero_point, to=ui8), scale, zero_point

"""`fold-quantization`: compute operators between a dequantization and a quantization on quantized values."""

from __future__ import annotations

import math
from typing import cast

from xdsl.dialects.builtin import IntegerType, Signedness, f32, i32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width, storage_of
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, StorageCastOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.quant import UniformQuantizedType, integer_bounds, zero_point_of
from glow_mlir.dialects.shapes import Shape, element_of, shape_of, size_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.blockwise_products import GatherBlocks, MultiplyBlocks
from glow_mlir.rewriting.lookup_tables import TabulateQuantized
from glow_mlir.rewriting.quantized_means import AverageOfQuantized, MeanOfQuantized, SumImages
from glow_mlir.rewriting.quantized_movement import MoveQuantized, QuantizeMoved
from glow_mlir.rewriting.quantized_values import known_quantized, product_of_scales, quantized_of, reshaped_scale
from glow_mlir.rewriting.rescaled_values import RescaleQuantized, keeps_quantizations
from glow_mlir.support.dataclass import dataclass

Product = ConvOp | MatMulOp | FullyConnectedOp


class MultiplyQuantized(Pattern):
    """Multiply quantized values in integers, and dequantize the accumulators; the bias is added behind."""

    @rooted
    def match_and_rewrite(self, op: Product, rewriter: Rewriter, /) -> None:
        left, right = (quantized_of(value, rewriter.storage) for value in op.operands[:2])
        if left is None or right is None or (isinstance(left.scale, SSAValue) and size_of(left.scale) > 1):
            return
        is_last = not isinstance(op, ConvOp) or is_channels_last(op.layout)
        if not is_last or not _fits(op, left.value, right.value):
            return
        emit = rewriter.emit
        scale = _channel_scale(op, right.scale, emit)
        if scale is None:
            return
        if isinstance(op, ConvOp):
            properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
            sums = emit(ConvOp, left.value, right.value, **properties)
        else:
            flags = (
                {}
                if isinstance(op, FullyConnectedOp)
                else {
                    "transpose_left": flag(op.transpose_left),
                    "transpose_right": flag(op.transpose_right),
                }
            )
            sums = emit(MatMulOp, left.value, right.value, **flags)
        number = emit(DequantizeOp, sums, product_of_scales(scale, left.scale, emit))
        rewriter.replace(op, (), [number if op.bias is None else emit(AddOp, number, op.bias)])


def _fits(op: Product, left: SSAValue, right: SSAValue) -> bool:
    """Whether both operands have equal width, and accumulators fit i32 for any quantized values."""
    kinds = element_of(left), element_of(right)
    alike = byte_width(kinds[0]) == byte_width(kinds[1]) <= 2
    return alike and _terms(op) * _largest(kinds[0]) * _largest(kinds[1]) < 1 << 31


def _terms(op: Product) -> int:
    """The maximum number of terms of a sum; the number of sums may be known only at run time."""
    if isinstance(op, ConvOp):
        return math.prod(shape_of(op.filter)[1:])
    is_turned = isinstance(op, MatMulOp) and flag(op.transpose_left)
    return largest(sizes_of(op.operands[0])[-2 if is_turned else -1])


def _largest(element: Attribute) -> int:
    """The largest distance of a quantized value from its zero point."""
    if isinstance(element, UniformQuantizedType):
        zero = zero_point_of(element)
        return max(element.most.data - zero, zero - element.least.data)
    least, most = integer_bounds(cast("IntegerType[int, Signedness]", element))
    return max(-least, most)


class MultiplyElements(Pattern):
    """
    Multiply two 8-bit quantized values elementwise in integers, except with accuracy strict: this saves a rounding.
    """

    @rooted
    def match_and_rewrite(self, op: MulOp, rewriter: Rewriter, /) -> None:
        if keeps_quantizations(rewriter.function):
            return
        left, right = (quantized_of(value, rewriter.storage) for value in op.operands)
        if left is None or right is None:
            return
        for quantized in (left, right):
            if byte_width(element_of(quantized.value)) > 1 or known_quantized(quantized, rewriter.storage) is not None:
                return
        emit = rewriter.emit
        product = emit(MulOp, _centred(left.value, emit), _centred(right.value, emit))
        rewriter.replace(op, DequantizeOp.make(product, product_of_scales(left.scale, right.scale, emit)))


def _centred(quantized: SSAValue, emit: Emitter) -> SSAValue:
    """Subtract the zero point of a quantized value, as i32."""
    element, zero = element_of(quantized), zero_point_of(element_of(quantized))
    integers = quantized if storage_of(element) == element else emit(StorageCastOp, quantized, to=storage_of(element))
    wide = emit(CastOp, integers, to=i32)
    return emit(SubOp, wide, emit.splat(zero, i32)) if zero else wide


def _channel_scale(op: Product, scale: float | SSAValue, emit: Emitter) -> SSAValue | None:
    """The scale of the right operand per output channel, or a scalar; `None` if it has another shape."""
    if not isinstance(scale, SSAValue):
        return emit.splat(scale, f32)
    shape = shape_of(scale)
    if math.prod(shape) == 1:
        return reshaped_scale(scale, (), emit)
    line = channel_line(op)
    fits = (*[1] * (len(line) - len(shape)), *shape) == line
    return reshaped_scale(scale, (math.prod(line),), emit) if fits else None


def channel_line(op: Product) -> Shape:
    """The shape of a per-output-channel scale that broadcasts to the right operand."""
    shape = shape_of(op.operands[1])
    is_transposed = isinstance(op, MatMulOp) and flag(op.transpose_right)
    axis = 0 if isinstance(op, ConvOp) else len(shape) - 2 if is_transposed else len(shape) - 1
    return tuple(size if position == axis else 1 for position, size in enumerate(shape))


@dataclass(frozen=True)
class FoldQuantizationPass(PatternPass):
    """
    Compute operators between a dequantization and a quantization on quantized values (paper §4.5): products and means
    in integers, data movement unchanged, sums and requantization in one step, unary functions by lookup tables.

    The remaining operators compute on floats, in registers if they are stacked. With accuracy `strict`, there is no
    requantization in one step: each quantization of the model rounds as in the model.
    """

    name = "fold-quantization"
    WALKS = (
        Walk(
            (
                MoveQuantized(),
                MultiplyQuantized(),
                MultiplyElements(),
                MultiplyBlocks(),
                GatherBlocks(),
                AverageOfQuantized(),
                MeanOfQuantized(),
                SumImages(),
                QuantizeMoved(),
                TabulateQuantized(),
                RescaleQuantized(),
            ),
            recursive=True,
        ),
    )

"""`fold-quantization`: operators between a dequantization and a quantization compute on codes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of, size_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.transforms.code_tables import TabulateCodes
from glow_mlir.transforms.codes import codes_of, product_of_scales, reshaped_scale
from glow_mlir.transforms.mean_codes import AverageCodes, MeanOfCodes
from glow_mlir.transforms.moved_codes import MoveCodes, QuantizeMoved
from glow_mlir.transforms.rescaled_codes import RescaleCodes

Product = ConvOp | MatMulOp | FullyConnectedOp


class MultiplyCodes(Pattern):
    """A product of numbers that codes stand for is one of codes, in integers, and the bias is added to its number."""

    @rooted
    def match_and_rewrite(self, op: Product, rewriter: Rewriter, /) -> None:
        left, right = (codes_of(value, rewriter.storage) for value in op.operands[:2])
        if left is None or right is None or (isinstance(left.scale, SSAValue) and size_of(left.scale) > 1):
            return
        widths = {byte_width(element_of(codes.value)) for codes in (left, right)}
        channels = shape_of(op.result)[-1]
        emit = rewriter.emit
        scale = _channel_scale(op, right.scale, channels, emit)
        if len(widths) > 1 or widths.pop() > 2 or scale is None:
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


def _channel_scale(op: Product, scale: float | SSAValue, channels: int, emit: Emitter) -> SSAValue | None:
    """The scale of the right operand for each channel of the result, or for all; `None` where neither."""
    if not isinstance(scale, SSAValue):
        return emit.splat(scale, f32)
    shape = shape_of(scale)
    if math.prod(shape) == 1:
        return reshaped_scale(scale, (), emit)
    line = _channel_line(op, channels)
    fits = (*[1] * (len(line) - len(shape)), *shape) == line
    return reshaped_scale(scale, (channels,), emit) if fits else None


def _channel_line(op: Product, channels: int) -> Shape:
    """The shape of a scale for each channel beside the right operand."""
    rank = rank_of(op.operands[1])
    if isinstance(op, ConvOp):
        return (channels, *[1] * (rank - 1))
    if isinstance(op, MatMulOp) and flag(op.transpose_right):
        return (*[1] * (rank - 2), channels, 1)
    return (*[1] * (rank - 1), channels)


@dataclass(frozen=True)
class FoldQuantizationPass(PatternPass):
    """
    Let operators between a dequantization and a quantization compute on codes (paper §4.5): products and means in
    integers, what moves elements as it is, sums and changes of scale at once, functions of one code from a table.

    What is left between the two computes on numbers, in registers where it stacks.
    """

    name = "fold-quantization"
    WALKS = (
        Walk(
            (
                MoveCodes(),
                MultiplyCodes(),
                AverageCodes(),
                MeanOfCodes(),
                QuantizeMoved(),
                RescaleCodes(),
                TabulateCodes(),
            ),
            recursive=True,
        ),
    )

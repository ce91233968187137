"""`fold-quantization`: operators between a dequantization and a quantization compute on codes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width, storage_of
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.clips import limits_of
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, DataMovement, PadOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, DivOp, MulOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.pooling import MaxPoolOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, RescaleOp, StorageCastOp
from glow_mlir.dialects.properties import flag, text
from glow_mlir.dialects.quant import UniformQuantizedType, parameters_of, zero_point_of
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of, size_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter

Product = ConvOp | MatMulOp | FullyConnectedOp


class Codes(NamedTuple):
    """Codes that stand for numbers: `value`, less the zero point in its type, times `scale`, a number or a value."""

    value: SSAValue
    scale: float | SSAValue


def codes_of(value: SSAValue, rewriter: Rewriter) -> Codes | None:
    """The codes that a value is made of, where their zero point is in their type, or there is none."""
    op = value.owner
    if not isinstance(op, DequantizeOp) or element_of(op.result) != f32:
        return None
    if op.scale is None:
        known = parameters_of(element_of(op.input))
        assert known is not None
        return Codes(op.input, known[0])
    if op.zero_point is not None:
        zero = rewriter.storage.value_of(op.zero_point)
        if zero is None or zero.any():
            return None
    return Codes(op.input, op.scale)


def _as_value(scale: float | SSAValue, emit: Emitter) -> SSAValue:
    return scale if isinstance(scale, SSAValue) else emit.splat(scale, f32)


class MoveCodes(Pattern):
    """
    What moves numbers moves their codes, and the largest number has the largest code (Glow's sinkRescaleQuantizedNode
    and its like).
    """

    @rooted
    def match_and_rewrite(self, op: DataMovement | MaxPoolOp, rewriter: Rewriter, /) -> None:
        count = len(op.operands) if isinstance(op, ConcatOp) else 1
        found = [codes_of(value, rewriter) for value in op.operands[:count]]
        known = [codes for codes in found if codes is not None]
        if not found or len(known) < count:
            return
        first, element = known[0], element_of(known[0].value)
        emit = rewriter.emit
        scale = _moved_scale(op, first.scale, emit)
        alike = all(element_of(codes.value) == element and codes.scale == first.scale for codes in known)
        if scale is None or not alike:
            return
        operands = [*(codes.value for codes in known), *op.operands[count:]]
        moved = _moved(op, operands, element, emit)
        if moved is not None:
            rewriter.replace(op, DequantizeOp.make(moved, scale if isinstance(scale, SSAValue) else None))


def _moved_scale(op: HighOp, scale: float | SSAValue, emit: Emitter) -> float | SSAValue | None:
    """The scale of moved codes; `None` where each has one that does not move with it."""
    if not isinstance(scale, SSAValue) or rank_of(scale) == 0:
        return scale
    if size_of(scale) == 1:
        return emit(ReshapeOp, scale, shape=())
    if isinstance(op, TransposeOp) and rank_of(scale) == rank_of(op.input):
        return emit(TransposeOp, scale, permutation=op.permutation)
    return None


def _moved(
    op: DataMovement | MaxPoolOp, operands: list[SSAValue], element: Attribute, emit: Emitter
) -> SSAValue | None:
    """What an operator makes of codes; `None` where it adds numbers that are no codes."""
    if isinstance(op, MaxPoolOp) or (isinstance(op, PadOp) and text(op.mode) == "constant"):
        if len(operands) > 1 and splat_number(operands[1]) != 0:
            return None
        stored = storage_of(element)
        integers = [emit(StorageCastOp, operands[0], to=stored)]
        if isinstance(op, PadOp):
            integers.append(emit.splat(zero_point_of(element), stored))
        moved = type(op).inferred(integers, op.properties, op.location)
        return emit(StorageCastOp, emit.insert(moved).results[0], to=element)
    if not isinstance(op, ConcatOp) and not op.moves_only():
        return None
    return emit.insert(type(op).inferred(operands, op.properties, op.location)).results[0]


class MultiplyCodes(Pattern):
    """A product of numbers that codes stand for is one of codes, in integers, and the bias is added to its number."""

    @rooted
    def match_and_rewrite(self, op: Product, rewriter: Rewriter, /) -> None:
        left, right = codes_of(op.operands[0], rewriter), codes_of(op.operands[1], rewriter)
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
        factor = _as_value(left.scale, emit)
        number = emit(DequantizeOp, sums, emit(MulOp, scale, factor))
        rewriter.replace(op, (), [number if op.bias is None else emit(AddOp, number, op.bias)])


def _channel_scale(op: Product, scale: float | SSAValue, channels: int, emit: Emitter) -> SSAValue | None:
    """The scale of the right operand for each channel of the result, or for all; `None` where neither."""
    if not isinstance(scale, SSAValue):
        return emit.splat(scale, f32)
    shape = shape_of(scale)
    if math.prod(shape) == 1:
        return emit(ReshapeOp, scale, shape=())
    line = _channel_line(op, channels)
    fits = (*[1] * (len(line) - len(shape)), *shape) == line
    return emit(ReshapeOp, scale, shape=(channels,)) if fits else None


def _channel_line(op: Product, channels: int) -> Shape:
    """The shape of a scale for each channel beside the right operand."""
    rank = rank_of(op.operands[1])
    if isinstance(op, ConvOp):
        return (channels, *[1] * (rank - 1))
    if isinstance(op, MatMulOp) and flag(op.transpose_right):
        return (*[1] * (rank - 2), channels, 1)
    return (*[1] * (rank - 1), channels)


class RescaleCodes(Pattern):
    """
    A quantization of what codes or sums of products stand for changes their scale, and of the same codes is nothing.

    A bias becomes an offset. Limits that the range of codes has anyway are left out.
    """

    @rooted
    def match_and_rewrite(self, op: QuantizeOp, rewriter: Rewriter, /) -> None:
        known = parameters_of(op.to)
        if known is None:
            return
        value, bias = _without_limits(op.input, op.to), None
        if isinstance(value.owner, AddOp):
            value, bias = value.owner.left, value.owner.right
            if isinstance(bias.owner, DequantizeOp) and not isinstance(value.owner, DequantizeOp):
                value, bias = bias, value
        codes = codes_of(value, rewriter)
        if codes is None or (bias is not None and not rewriter.storage.is_constant(bias)):
            return
        if bias is None and element_of(codes.value) == op.to:
            rewriter.replace(op, (), [codes.value])
            return
        self._rescale(op, codes, bias, known[0], rewriter.emit, rewriter)

    def _rescale(
        self, op: QuantizeOp, codes: Codes, bias: SSAValue | None, scale: float, emit: Emitter, rewriter: Rewriter
    ) -> None:
        unit = emit.splat(scale, f32)
        given = _as_value(codes.scale, emit)
        multiplier = emit(DivOp, given, unit)
        offset = None if bias is None else emit(DivOp, bias, unit)
        zero = parameters_of(element_of(codes.value))
        if zero is not None and zero[1]:
            shift = emit(MulOp, multiplier, emit.splat(-float(zero[1]), f32))
            offset = shift if offset is None else emit(AddOp, offset, shift)
        rewriter.replace(op, RescaleOp.make(codes.value, multiplier, offset, to=op.to))


def _without_limits(value: SSAValue, to: Attribute) -> SSAValue:
    """What a value is limited from, where codes of a type have these limits anyway."""
    assert isinstance(to, UniformQuantizedType)
    (scale, zero), least, most = to.quantization[0], to.least.data, to.most.data
    while isinstance(value.owner, ReluOp | ClipOp):
        limits = limits_of(value.owner)
        if limits is None:
            break
        low, high = (limit / scale + zero for limit in (limits.low, limits.high))
        if not (low <= least + 0.5 and high >= most - 0.5):
            break
        value = limits.input
    return value


@dataclass(frozen=True)
class FoldQuantizationPass(PatternPass):
    """
    Let operators between a dequantization and a quantization compute on codes (paper §4.5): products in integers, what
    moves elements as it is, changes of scale at once.

    What is left between the two computes on numbers, in registers where it stacks.
    """

    name = "fold-quantization"
    WALKS = (Walk((MoveCodes(), MultiplyCodes(), RescaleCodes()), recursive=True),)

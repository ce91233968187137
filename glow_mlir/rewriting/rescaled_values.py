"""Requantization of combinations of quantized values: rescaling, clipping to a subrange, and no-ops."""

from __future__ import annotations

from functools import reduce

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width, storage_of
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.canonicalization.clips import limits_of
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, BitwiseXorOp, ClipOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import BitCastOp, CastOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, RescaleOp, StorageCastOp
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.quant import UniformQuantizedType, integer_bounds, zero_point_of
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.integer_requantization import rescaled_by_integers
from glow_mlir.rewriting.policies import is_strict, policy_of
from glow_mlir.rewriting.quantized_values import Combination, combination_of, stored_integers


class RescaleQuantized(Pattern):
    """
    Requantize a combination of quantized values, or of accumulators, in one step.

    Added constants become an offset, clips become limits of the quantized type. Requantization to the same scale is a
    no-op. With accuracy strict only such no-ops are simplified: rescaling rounds once where the model rounds several
    times.
    """

    @rooted
    def match_and_rewrite(self, op: QuantizeOp, rewriter: Rewriter, /) -> None:
        if not isinstance(op.to, UniformQuantizedType):
            return
        value, to = limited(op.input, op.to)
        found = combination_of(value, rewriter.storage)
        if found is None or not found.terms:
            return
        emit = rewriter.emit
        result = _same_quantized(found, to, emit)
        if result is None and not keeps_quantizations(rewriter.function):
            found = found.over(to.quantization[0][0])
            is_integer = policy_of(rewriter.function).requantization == "integer"
            result = rescaled_by_integers(found, to, emit) if is_integer else rescaled(found, to, emit)
        # The constant may have determined the shape of the result.
        if result is None or sizes_of(result) != sizes_of(op.result):
            rewriter.discard()
            return
        rewriter.replace(op, (), [result if element_of(result) == op.to else emit(StorageCastOp, result, to=op.to)])


def rescaled(found: Combination, to: UniformQuantizedType, emit: Emitter) -> SSAValue:
    """
    Requantize a combination in f32; its factors are relative to the scale of `to`. One term is rescaled, the others
    are dequantized into its offset.
    """
    given = sorted(found.terms, key=lambda term: -byte_width(element_of(term[0])))
    terms = [(_exact(value, emit), factor) for value, factor in given]
    number = np.asarray(0 if found.offset is None else found.offset, np.float32)
    for value, multiplier in terms:
        number = number - np.float32(zero_point_of(element_of(value))) * multiplier
    (first, multiplier), *rest = [(value, emit.constant(factor, "multiplier")) for value, factor in terms]
    offsets = [emit(DequantizeOp, stored_integers(value, emit), factor) for value, factor in rest]
    if number.any():
        offsets.append(emit.constant(np.asarray(number), "offset"))
    offset = reduce(lambda a, b: emit(AddOp, a, b), offsets) if offsets else None
    return emit(RescaleOp, first, multiplier, offset, to=to)


def _exact(value: SSAValue, emit: Emitter) -> SSAValue:
    """
    16-bit quantized values with their zero point subtracted, as i32; other values unchanged.

    In f32, a large zero point in the offset would cancel against the product and lose the low bits.
    """
    element = element_of(value)
    zero_point = zero_point_of(element)
    if byte_width(element) != 2 or not zero_point:
        return value
    return emit(SubOp, emit(CastOp, stored_integers(value, emit), to=i32), emit.splat(zero_point, i32))


def _same_quantized(found: Combination, to: UniformQuantizedType, emit: Emitter) -> SSAValue | None:
    """Convert between types that differ only in signedness and limits, in integers; `None` for other types."""
    if len(found.terms) > 1 or found.offset is not None:
        return None
    value, factor = next(iter(found.terms))
    element = element_of(value)
    if not isinstance(element, UniformQuantizedType) or not np.array_equal(factor, np.float32(to.quantization[0][0])):
        return None
    stored, wanted = storage_of(element), to.storage
    if byte_width(stored) != byte_width(wanted):
        return None
    lowest, _ = integer_bounds(element.storage)
    if zero_point_of(to) - zero_point_of(element) != integer_bounds(wanted)[0] - lowest:
        return None
    quantized = stored_integers(value, emit)
    if stored != wanted:
        # Flipping the highest bit converts between signed and unsigned.
        quantized = emit(BitwiseXorOp, emit(BitCastOp, quantized, to=wanted), emit.splat(_highest_bit(wanted), wanted))
    bounds = integer_bounds(wanted)
    limits = [
        emit.splat(own, wanted) if own != bound else None
        for own, bound in zip((to.least.data, to.most.data), bounds, strict=True)
    ]
    if any(limit is not None for limit in limits):
        quantized = emit(ClipOp, quantized, *limits)
    return emit(StorageCastOp, quantized, to=to)


def _highest_bit(element: Attribute) -> int:
    least, most = integer_bounds(element)  # pyright: ignore[reportArgumentType]
    return least or (most + 1) // 2


def keeps_quantizations(function: FunctionOp) -> bool:
    """Whether all quantizations of the model keep their roundings: accuracy strict with requantization in floats."""
    return is_strict(function) and policy_of(function).requantization == "float"


def limited(value: SSAValue, to: UniformQuantizedType) -> tuple[SSAValue, UniformQuantizedType]:
    """Strip clips from `value`, and narrow the limits of the quantized type to theirs."""
    (scale, zero), *_ = to.quantization
    while isinstance(value.owner, ReluOp | ClipOp):
        limits = limits_of(value.owner)
        if limits is None:
            break
        least, most = (
            int(np.clip(float(np.rint(np.float32(limit) / np.float32(scale))) + zero, to.least.data, to.most.data))
            for limit in (limits.low, limits.high)
        )
        if not least <= zero <= most or least == most:
            break
        to = UniformQuantizedType.of(to.storage, to.expressed, to.quantization, None, (least, most))
        value = limits.input
    return value, to

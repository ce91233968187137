"""Requantization of integer accumulators in integer arithmetic: multiplication, addition and a rounding shift."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.dialects.quant import UniformQuantizedType, zero_point_of
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.rewriting.quantized_values import Combination, stored_integers

MAX_SHIFT = 62
"""The largest shift of `integer_rescale`."""

SUM_BITS = 30
"""Number of bits of sums in the common scale."""


def rescaled_by_integers(found: Combination, to: UniformQuantizedType, emit: Emitter) -> SSAValue | None:
    """
    Requantize a combination of quantized values in integers; its factors are relative to the scale of `to`.

    A single accumulator takes its constant as an integer offset in its own scale. Several terms, or narrow quantized
    values with a constant, are added in a common power-of-two scale. `None` if a factor cannot be represented.
    """
    number = np.asarray(0.0 if found.offset is None else found.offset, np.float64)
    if len(found.terms) == 1 and (byte_width(element_of(found.terms[0][0])) > 2 or not number.any()):
        ((value, factor),) = found.terms
        if not factor.all():
            return None
        offset = np.rint(number / factor) - zero_point_of(element_of(value))
        return _rescaled(value, factor, offset, to, emit)
    fraction_bits = _common_shift(found, number)
    if fraction_bits < 1:
        return None
    parts = [_in_common_scale(value, factor, fraction_bits, emit) for value, factor in found.terms]
    if any(part is None for part in parts):
        return None
    offset = np.rint(number * 2.0**fraction_bits)
    for value, factor in found.terms:
        if byte_width(element_of(value)) <= 2:
            offset = offset - zero_point_of(element_of(value)) * np.rint(factor * 2.0**fraction_bits)
    total = reduce(lambda a, b: emit(AddOp, a, b), [part for part in parts if part is not None])
    multiplier, shift = (emit.constant(np.asarray(n, np.int32), "shift") for n in (1, fraction_bits))
    known = emit.constant(np.asarray(offset, np.int32), "offset") if offset.any() else None
    return emit(IntegerRescaleOp, total, multiplier, shift, known, to=to)


def _rescaled(
    value: SSAValue, factor: np.ndarray, offset: np.ndarray, to: UniformQuantizedType | None, emit: Emitter
) -> SSAValue | None:
    """
    Multiply integers plus an offset by a factor of 31 bits; `None` if it is too large. The result is i32 if `to` is
    `None`.
    """
    fraction, exponent = np.frexp(factor.astype(np.float64))
    shift = np.minimum(31 - exponent, MAX_SHIFT)
    multiplier = np.rint(np.ldexp(fraction, exponent + shift))
    is_carried = np.abs(multiplier) == 2.0**31
    multiplier, shift = np.where(is_carried, multiplier / 2, multiplier), np.where(is_carried, shift - 1, shift)
    if shift.min() < 1 or np.abs(offset).max() >= 2.0**31:
        return None
    operands = [emit.constant(np.asarray(part, np.int32), "multiplier") for part in (multiplier, shift)]
    known = emit.constant(np.asarray(offset, np.int32), "offset") if offset.any() else None
    return emit(IntegerRescaleOp, stored_integers(value, emit), *operands, known, to=to or i32)


def _common_shift(found: Combination, number: np.ndarray) -> int:
    """The number of fraction bits for which the sum fits 32 bits, with narrow values at their largest."""
    largest = float(np.abs(number).max())
    for value, factor in found.terms:
        bits = 8 * byte_width(element_of(value))
        # An accumulator counts as a 16-bit value: its result is requantized to at most that width.
        largest += float(np.abs(factor).max()) * 2.0**bits if bits <= 16 else 2.0**16
    return min(SUM_BITS, SUM_BITS - math.ceil(math.log2(max(largest, 2.0**-20))))


def _in_common_scale(value: SSAValue, factor: np.ndarray, fraction_bits: int, emit: Emitter) -> SSAValue | None:
    """
    Multiply quantized values by a factor, in i32 with `fraction_bits` fraction bits; narrow ones keep their zero point.
    """
    scaled = factor.astype(np.float64) * 2.0**fraction_bits
    if byte_width(element_of(value)) > 2:
        product = _rescaled(value, scaled, np.asarray(-float(zero_point_of(element_of(value)))), None, emit)
        # Clip to 16 bits, the width that the sum assumes, so that it does not wrap.
        limits = [emit.splat(sign * 2.0 ** (fraction_bits + 16), i32) for sign in (-1, 1)]
        return product and emit(ClipOp, product, *limits)
    wide = emit(CastOp, stored_integers(value, emit), to=i32)
    return emit(MulOp, wide, emit.constant(np.asarray(np.rint(scaled), np.int32), "multiplier"))

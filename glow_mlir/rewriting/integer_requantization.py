"""Changes of scale of sums of codes by integers alone: multiplication, addition, and a shift that rounds."""

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
"""Bits of sums of codes in a common scale."""


def rescaled_by_integers(found: Combination, to: UniformQuantizedType, emit: Emitter) -> SSAValue | None:
    """
    The codes of a sum of codes, whose factors are relative to their scale; `None` where a factor is out of reach.

    A sum of products takes its constant as an integer in its own scale. Several terms, or codes with a constant, are
    added in a common scale that is a power of two.
    """
    number = np.asarray(0.0 if found.offset is None else found.offset, np.float64)
    if len(found.terms) == 1 and (byte_width(element_of(found.terms[0][0])) > 2 or not number.any()):
        ((value, factor),) = found.terms
        if not factor.all():
            return None
        offset = np.rint(number / factor) - zero_point_of(element_of(value))
        return _rescaled(value, factor, offset, to, emit)
    places = _common_places(found, number)
    if places < 1:
        return None
    parts = [_in_common_scale(value, factor, places, emit) for value, factor in found.terms]
    if any(part is None for part in parts):
        return None
    offset = np.rint(number * 2.0**places)
    for value, factor in found.terms:
        if byte_width(element_of(value)) <= 2:
            offset = offset - zero_point_of(element_of(value)) * np.rint(factor * 2.0**places)
    total = reduce(lambda a, b: emit(AddOp, a, b), [part for part in parts if part is not None])
    multiplier, shift = (emit.constant(np.asarray(n, np.int32), "shift") for n in (1, places))
    known = emit.constant(np.asarray(offset, np.int32), "offset") if offset.any() else None
    return emit(IntegerRescaleOp, total, multiplier, shift, known, to=to)


def _rescaled(
    value: SSAValue, factor: np.ndarray, offset: np.ndarray, to: UniformQuantizedType | None, emit: Emitter
) -> SSAValue | None:
    """Integers, and an offset, times a factor of 31 bits; `None` where it is too large. Without a type, i32."""
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


def _common_places(found: Combination, number: np.ndarray) -> int:
    """How many binary places a sum has in 32 bits, if narrow codes are as large as they may be."""
    largest = float(np.abs(number).max())
    for value, factor in found.terms:
        bits = 8 * byte_width(element_of(value))
        # A sum of products counts as codes of 16 bits: it ends as codes that are no wider.
        largest += float(np.abs(factor).max()) * 2.0**bits if bits <= 16 else 2.0**16
    return min(SUM_BITS, SUM_BITS - math.ceil(math.log2(max(largest, 2.0**-20))))


def _in_common_scale(value: SSAValue, factor: np.ndarray, places: int, emit: Emitter) -> SSAValue | None:
    """Codes, without their zero point where they are narrow, times a factor, in i32 with so many binary places."""
    scaled = factor.astype(np.float64) * 2.0**places
    if byte_width(element_of(value)) > 2:
        product = _rescaled(value, scaled, np.asarray(-float(zero_point_of(element_of(value)))), None, emit)
        # No more than codes of 16 bits, as which it counts in the sum: that does not wrap.
        limits = [emit.splat(sign * 2.0 ** (places + 16), i32) for sign in (-1, 1)]
        return product and emit(ClipOp, product, *limits)
    wide = emit(CastOp, stored_integers(value, emit), to=i32)
    return emit(MulOp, wide, emit.constant(np.asarray(np.rint(scaled), np.int32), "multiplier"))

"""Changes of scale in integers, with the roundings of TensorFlow Lite's reference kernels."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f64, i32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    ClipOp,
    GreaterOrEqualOp,
    LessOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS, AbsOp, CastOp, NegOp
from glow_mlir.dialects.glow_high.quantization import TWICE_RIGHT, IntegerRescaleOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.tflite.node import TfliteNode

BITS = 31
"""The fraction bits of a multiplier."""

SHORT = "short"
"""The rounding of sums of 64 bits with multipliers of 16 bits."""

EXACT = "exact"
"""The rounding of sums of 64 bits in f64."""


def quantized_multipliers(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Multipliers and shifts to the right, of i32, for factors of f64: factor ≈ multiplier / 2^shift.

    TensorFlow Lite's QuantizeMultiplier; factors that are too small become 0. Raises `UnsupportedError` for infinite
    ones.
    """
    if not np.isfinite(factors).all():
        raise UnsupportedError("a quotient of scales is no number", hint="the scales of its tensors may be damaged")
    fraction, exponent = np.frexp(factors)
    multipliers = np.floor(np.abs(fraction) * 2.0**BITS + 0.5) * np.sign(fraction)
    is_whole = np.abs(multipliers) == 2.0**BITS
    multipliers, exponent = np.where(is_whole, multipliers / 2, multipliers), exponent + is_whole
    is_small = (exponent < -BITS) | (factors == 0)
    return (
        np.where(is_small, 0, multipliers).astype(np.int32),
        np.where(is_small, BITS, BITS - exponent).astype(np.int32),
    )


def multiplied(values: np.ndarray, multiplier: int, shift: int) -> np.ndarray:
    """
    Integers times a multiplier of i32, divided by 2^shift: TensorFlow Lite's MultiplyByQuantizedMultiplier.

    Quotients by 2^31 have halves rounded up, and those by the rest of the shift have halves rounded away from zero.
    """
    left, right = max(BITS - shift, 0), max(shift - BITS, 0)
    high = ((values.astype(np.int64) << left) * multiplier + (1 << (BITS - 1))) >> BITS
    mask = (1 << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


def scaled_by(node: TfliteNode, value: SSAValue, factor: float, bits: int = 0) -> SSAValue:
    """Integers of i32 times 2^bits, then times a factor, as i32."""
    is_half = bits > 0 and factor == 0.5
    if bits:
        one = node.constant(np.array(1 << (bits - is_half), np.int32), f"{node.name}.one")
        value = node.emit(MulOp, value, one)
    if is_half:  # Nothing is rounded.
        return value
    multipliers, shifts = quantized_multipliers(np.array([factor]))
    return rescaled_twice(node, value, multipliers[0], shifts[0], i32)


def limited(node: TfliteNode, value: SSAValue, activation: str = "none") -> SSAValue:
    """Integers, of i32, plus the zero point of the result, limited to its range, in its type."""
    to = node.type_of(node.output(), activation)
    zero = int(node.quantization(node.output()).zero_points[0])
    moved = node.emit(AddOp, value, node.splat(zero, value)) if zero else value
    clipped = node.emit(ClipOp, moved, *(node.splat(limit.data, value) for limit in (to.least, to.most)))
    return node.cast(clipped, ELEMENT_TYPES[node.output().dtype])


def ratio(node: TfliteNode) -> float:
    """The scale of the first operand divided by that of the result, in f32."""
    own, out = (np.float32(node.scale(item)) for item in (node.tensor(0), node.output()))
    return float(own / out)


def rescaled(
    node: TfliteNode, value: SSAValue, factors: np.ndarray, activation: str = "none", rounding: str = "twice"
) -> SSAValue:
    """
    Integers times factors, one or one for each index of the last axis, as those of the node's result.

    `rounding` is that of `glow_high.integer_rescale`, or one for sums of 64 bits: `short` is once, with multipliers of
    16 bits, and `exact` computes in f64, with halves rounded away from zero.
    """
    if rounding == EXACT:
        return _exactly_rescaled(node, value, factors, activation)
    multipliers, shifts = quantized_multipliers(factors)
    if rounding == SHORT:
        multipliers, shifts = np.minimum((multipliers.astype(np.int64) + (1 << 15)) >> 16, 0x7FFF), shifts - 16
    if len(multipliers) == 1:
        multipliers, shifts = multipliers[0], shifts[0]
    to = node.type_of(node.output(), activation)
    if rounding == "twice":
        return node.stored(rescaled_twice(node, value, multipliers, shifts, to))
    operands, word = _constants(node, multipliers, shifts), "once" if rounding == SHORT else rounding
    return node.stored(node.emit(IntegerRescaleOp, value, *operands, to=to, rounding=word))


def rescaled_twice(
    node: TfliteNode, value: SSAValue, multipliers: np.ndarray, shifts: np.ndarray, to: Attribute
) -> SSAValue:
    """Integers times multiplier / 2^shift, rounded twice: by the shorter rule where all shifts allow it."""
    shifts = np.where(multipliers == 0, np.maximum(shifts, BITS + 1), shifts)
    rounding = TWICE_RIGHT if shifts.min() > BITS else "twice"
    return node.emit(IntegerRescaleOp, value, *_constants(node, multipliers, shifts), to=to, rounding=rounding)


def _constants(node: TfliteNode, multipliers: np.ndarray, shifts: np.ndarray) -> list[SSAValue]:
    return [
        node.constant(np.asarray(item, np.int32), f"{node.name}.{role}")
        for item, role in ((multipliers, "multiplier"), (shifts, "shift"))
    ]


def _exactly_rescaled(node: TfliteNode, value: SSAValue, factors: np.ndarray, activation: str) -> SSAValue:
    to, zero = node.type_of(node.output(), activation), int(node.quantization(node.output()).zero_points[0])
    scaled = node.emit(MulOp, node.cast(value, f64), node.constant(factors, f"{node.name}.factors"))
    moved = node.emit(AddOp, rounded_away(node, scaled), node.splat(zero, f64))
    clipped = node.emit(ClipOp, moved, *(node.splat(limit.data, f64) for limit in (to.least, to.most)))
    return node.cast(clipped, ELEMENT_TYPES[node.output().dtype])


def rounded_away(node: TfliteNode, value: SSAValue) -> SSAValue:
    """Floats with halves rounded away from zero."""
    size = node.emit(AbsOp, value)
    below = node.emit(FLOAT_FUNCTIONS["floor"], size)
    is_half = node.emit(GreaterOrEqualOp, node.emit(SubOp, size, below), node.splat(0.5, value))
    whole = node.emit(AddOp, below, node.cast(is_half, element_of(value)))
    is_negative = node.emit(LessOp, value, node.splat(0, value))
    return node.emit(WhereOp, is_negative, node.emit(NegOp, whole), whole)


def centred(node: TfliteNode, position: int) -> SSAValue:
    """The integers of an operand of one scale less their zero point, of i32."""
    node.scale(node.tensor(position))
    wide = node.emit(CastOp, node.input(position), to=i32)
    zero = int(node.quantization(node.tensor(position)).zero_points[0])
    return node.emit(SubOp, wide, node.constant(np.array(zero, np.int32), f"{node.name}.zero")) if zero else wide

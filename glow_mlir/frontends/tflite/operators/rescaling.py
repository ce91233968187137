"""Changes of scale in integers, with the roundings of TensorFlow Lite's reference kernels."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import SubOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import TWICE_RIGHT, IntegerRescaleOp
from glow_mlir.frontends.tflite.node import TfliteNode

BITS = 31
"""The fraction bits of a multiplier."""


def quantized_multipliers(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Multipliers and shifts to the right, of i32, for factors of f64: factor ≈ multiplier / 2^shift.

    TensorFlow Lite's QuantizeMultiplier; factors that are too small become 0.
    """
    fraction, exponent = np.frexp(factors)
    multipliers = np.floor(np.abs(fraction) * 2.0**BITS + 0.5) * np.sign(fraction)
    is_whole = np.abs(multipliers) == 2.0**BITS
    multipliers, exponent = np.where(is_whole, multipliers / 2, multipliers), exponent + is_whole
    is_small = (exponent < -BITS) | (factors == 0)
    return (
        np.where(is_small, 0, multipliers).astype(np.int32),
        np.where(is_small, BITS, BITS - exponent).astype(np.int32),
    )


def rescaled(
    node: TfliteNode, value: SSAValue, factors: np.ndarray, activation: str = "none", rounding: str = "twice"
) -> SSAValue:
    """Integers times factors, one or one for each index of the last axis, as those of the node's result."""
    multipliers, shifts = quantized_multipliers(factors)
    if len(multipliers) == 1:
        multipliers, shifts = multipliers[0], shifts[0]
    to = node.type_of(node.output(), activation)
    if rounding == "twice":
        return node.stored(rescaled_twice(node, value, multipliers, shifts, to))
    operands = _constants(node, multipliers, shifts)
    return node.stored(node.emit(IntegerRescaleOp, value, *operands, to=to, rounding=rounding))


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


def centred(node: TfliteNode, position: int) -> SSAValue:
    """The integers of an operand of one scale less their zero point, of i32."""
    node.scale(node.tensor(position))
    wide = node.emit(CastOp, node.input(position), to=i32)
    zero = int(node.quantization(node.tensor(position)).zero_points[0])
    return node.emit(SubOp, wide, node.constant(np.array(zero, np.int32), f"{node.name}.zero")) if zero else wide

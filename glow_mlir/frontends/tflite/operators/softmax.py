"""Softmax of floats, and of quantized values with the tables of the reference."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    BitShiftOp,
    ClipOp,
    MulOp,
    SubOp,
)
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceSumOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.fixed_point import exponential, halved
from glow_mlir.frontends.tflite.operators.interpolation import at_lines, entries, lines, number
from glow_mlir.frontends.tflite.operators.rescaling import BITS, multiplied, quantized_multipliers, scaled_by
from glow_mlir.frontends.tflite.operators.run_time_fixed_point import length, reciprocal, shifted

PAIRS = (("int8", "int8"), ("uint8", "uint8"), ("int8", "int16"), ("uint8", "int16"), ("int16", "int16"))
"""The types of quantized operands and results."""


@tflite_operator("SOFTMAX")
def softmax(node: TfliteNode) -> SSAValue:
    """Exponentials divided by their sum along the last axis; those of quantized values are entries of a table."""
    beta = node.options.real(0)
    if node.is_float():
        scaled = node.input(0) if beta == 1 else node.emit(MulOp, node.input(0), node.splat(beta, node.input(0)))
        return node.emit(SoftmaxOp, scaled, axis=-1)
    kinds = node.tensor(0).dtype, node.output().dtype
    if kinds not in PAIRS or not node.shape(0):
        raise node.unsupported(f"of {kinds[0]} as {kinds[1]} is not supported")
    below = _below_largest(node)
    found = _of_lines(node, below, beta) if kinds[0] == "int16" else _of_table(node, below, beta)
    clipped = node.emit(ClipOp, found, *(node.splat(limit, i32) for limit in node.limits(node.output())))
    return node.cast(clipped, ELEMENT_TYPES[kinds[1]])


def _below_largest(node: TfliteNode) -> SSAValue:
    """The distances, of i32, of elements from the largest one, which are not above 0."""
    wide = node.cast(node.input(0), i32)
    return node.emit(SubOp, wide, node.emit(ReduceMaxOp, wide, axes=[-1], keepdims=True))


DIFFERENCE_BITS, SUM_BITS = 5, 12
"""The bits before the point of distances, and of sums of powers."""


def _of_table(node: TfliteNode, below: SSAValue, beta: float) -> SSAValue:
    """Values of 8 bits, in fixed point: powers are entries of a table, and the reciprocal of their sum is computed."""
    powers = _powers(node, beta)
    rows = node.emit(AddOp, below, number(node, 255))
    total = node.emit(ReduceSumOp, entries(node, halved(powers, SUM_BITS), rows, "shares"), axes=[-1], keepdims=True)
    bits = length(node, total)
    aligned = shifted(node, total, node.emit(SubOp, number(node, 31), bits))
    fraction = node.cast(node.emit(SubOp, aligned, node.splat(1 << 31, i64)), i32)
    width = np.dtype(node.output().dtype).itemsize * 8
    shift = node.emit(AddOp, bits, number(node, 31 + SUM_BITS - width))
    inverse = reciprocal(node, fraction)
    whole = node.emit(IntegerRescaleOp, entries(node, powers, rows, "powers"), inverse, shift, to=i32, rounding="twice")
    return node.emit(AddOp, whole, number(node, node.limits(node.output())[0]))


def _powers(node: TfliteNode, beta: float) -> np.ndarray:
    """The exponentials, of Q0, of the distances from -255 to 0; those of distances that are too large are 0."""
    factor = min(float(np.float32(beta)) * node.scale(node.tensor(0)) * 2.0 ** (31 - DIFFERENCE_BITS), 2.0**31 - 1)
    multipliers, shifts = quantized_multipliers(np.array([factor]))
    radius = ((1 << DIFFERENCE_BITS) - 1) << (31 - DIFFERENCE_BITS)
    distances = np.arange(-255, 1)
    scaled = multiplied(distances, int(multipliers[0]), int(shifts[0]))
    is_near = distances >= -(radius >> max(BITS - int(shifts[0]), 0))
    return np.where(is_near, exponential(np.where(is_near, scaled, 0), DIFFERENCE_BITS), 0)


LEAST = -10.0
"""The smallest number whose exponential is not that of its limit."""

SPAN = 65535
"""The distance of the smallest and the largest integer of 16 bits."""


def _of_lines(node: TfliteNode, below: SSAValue, beta: float) -> SSAValue:
    """Values of 16 bits: powers with 15 fraction bits, and the reciprocal of their sum, on lines between 513 ends."""
    exponentials = lines(np.exp, (-LEAST / SPAN, 32767), (2 / SPAN, 0), np.float64)
    inverses = lines(lambda x: 1 / (1 + x), (1 / SPAN, -32768), (2 / SPAN, 0), np.float64)
    factor = float(np.float32(node.scale(node.tensor(0))) * np.float32(beta)) / (-LEAST / SPAN)
    moved = node.emit(AddOp, scaled_by(node, below, factor), number(node, 32767))
    powers = at_lines(node, _short(node, moved), exponentials, "exponentials")
    total = node.emit(ReduceSumOp, powers, axes=[-1], keepdims=True)
    bits = length(node, total)
    aligned = shifted(node, total, node.emit(SubOp, number(node, 30), bits))
    aligned = node.emit(AddOp, aligned, node.splat(1 << 13, i64))
    aligned = node.cast(node.emit(BitShiftOp, aligned, node.splat(14, i64), direction="right"), i32)
    centre = node.emit(SubOp, aligned, number(node, (1 << 15) + (1 << 16)))
    inverse = node.cast(at_lines(node, _short(node, centre), inverses, "inverses"), i64)
    right = node.cast(bits, i64)
    half = node.emit(BitShiftOp, node.splat(1, i64), node.emit(SubOp, right, node.splat(1, i64)), direction="left")
    product = node.emit(AddOp, node.emit(MulOp, node.cast(powers, i64), inverse), half)
    found = node.cast(node.emit(BitShiftOp, product, right, direction="right"), i32)
    return node.emit(ClipOp, found, number(node, 0), number(node, 32767))


def _short(node: TfliteNode, value: SSAValue) -> SSAValue:
    """Integers of i32 limited to 16 bits."""
    return node.emit(ClipOp, value, number(node, -32768), number(node, 32767))

"""Softmax of floats, and of quantized values with the tables of the reference."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    BitShiftOp,
    ClipOp,
    DivOp,
    GreaterOrEqualOp,
    MulOp,
    SubOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceSumOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.interpolation import at_lines, lines, number
from glow_mlir.frontends.tflite.operators.rescaling import scaled_by

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


def _of_table(node: TfliteNode, below: SSAValue, beta: float) -> SSAValue:
    """Values of 8 bits: powers and quotients are of f32."""
    scale = np.float32(node.quantization(node.tensor(0)).scales[0] * np.float32(beta))
    out = node.quantization(node.output())
    table = np.array([math.exp(float(-scale * np.float32(255 - entry))) for entry in range(256)], np.float32)
    powers = node.emit(
        GatherOp, node.constant(table, f"{node.name}.table"), node.emit(AddOp, below, number(node, 255)), axis=0
    )
    total = node.emit(ReduceSumOp, powers, axes=[-1], keepdims=True)
    inverse = node.emit(DivOp, node.splat(1, f32), node.emit(MulOp, total, node.splat(float(out.scales[0]), f32)))
    scaled = node.emit(MulOp, powers, inverse)
    if node.output().dtype == "uint8":
        return node.cast(node.emit(AddOp, scaled, node.splat(0.5, f32)), i32)  # The reference adds no zero point.
    rounded = node.cast(node.emit(FLOAT_FUNCTIONS["round_even"], scaled), i32)
    return node.emit(AddOp, rounded, number(node, int(out.zero_points[0])))


LEAST = -10.0
"""The smallest number whose exponential is not that of its limit."""

SPAN = 65535
"""The distance of the smallest and the largest integer of 16 bits."""


def _of_lines(node: TfliteNode, below: SSAValue, beta: float) -> SSAValue:
    """Values of 16 bits: powers with 15 fraction bits, and the reciprocal of their sum, on lines between 513 ends."""
    exponentials = lines(np.exp, (-LEAST / SPAN, 32767), (2 / SPAN, 0), np.float64)
    inverses = lines(lambda x: 1 / (1 + x), (1 / SPAN, -32768), (2 / SPAN, 0), np.float64)
    factor = float(np.float32(node.scale(node.tensor(0))) * np.float32(beta)) / (-LEAST / SPAN)
    shifted = node.emit(AddOp, scaled_by(node, below, factor), number(node, 32767))
    powers = at_lines(node, _short(node, shifted), exponentials, "exponentials")
    total = node.emit(ReduceSumOp, powers, axes=[-1], keepdims=True)
    length = _length(node, total)
    left = node.cast(node.emit(SubOp, number(node, 30), length), i64)
    aligned = node.emit(BitShiftOp, node.cast(total, i64), left, direction="left")
    aligned = node.emit(AddOp, aligned, node.splat(1 << 13, i64))
    aligned = node.cast(node.emit(BitShiftOp, aligned, node.splat(14, i64), direction="right"), i32)
    centre = node.emit(SubOp, aligned, number(node, (1 << 15) + (1 << 16)))
    inverse = node.cast(at_lines(node, _short(node, centre), inverses, "inverses"), i64)
    right = node.cast(length, i64)
    half = node.emit(BitShiftOp, node.splat(1, i64), node.emit(SubOp, right, node.splat(1, i64)), direction="left")
    product = node.emit(AddOp, node.emit(MulOp, node.cast(powers, i64), inverse), half)
    found = node.cast(node.emit(BitShiftOp, product, right, direction="right"), i32)
    return node.emit(ClipOp, found, number(node, 0), number(node, 32767))


def _short(node: TfliteNode, value: SSAValue) -> SSAValue:
    """Integers of i32 limited to 16 bits."""
    return node.emit(ClipOp, value, number(node, -32768), number(node, 32767))


def _length(node: TfliteNode, total: SSAValue) -> SSAValue:
    """⌊log2 x⌋ of integers [..., 1] of i32 above 0: the number of powers of 2 that they reach, less one."""
    powers = node.constant((np.int64(1) << np.arange(1, 31)).astype(np.int32), f"{node.name}.powers")
    reached = node.cast(node.emit(GreaterOrEqualOp, total, powers), i32)
    return node.emit(ReduceSumOp, reached, axes=[-1], keepdims=True)

"""Functions of quantized values of 16 bits: tables, between whose entries a line is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import i16, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    BitShiftOp,
    BitwiseAndOp,
    GreaterOrEqualOp,
    LessOp,
    MinOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.frontends.tflite.node import TfliteNode

Function = Callable[[np.ndarray], np.ndarray]

STEPS = 512
"""The number of lines of a function of 16 bits."""

INDEX_BITS = 7
"""The bits of a value that are the position on its line."""


def rounded(values: np.ndarray) -> np.ndarray:
    """Floats with halves rounded away from zero, in their type."""
    return np.copysign(np.floor(np.abs(values) + values.dtype.type(0.5)), values)


def lines(function: Function, own: tuple[float, int], out: tuple[float, int], kind: type[np.floating]) -> np.ndarray:
    """
    The 513 ends of lines, i64, for a function and the scales and zero points of operand and result.

    LUTPopulate of TensorFlow Lite: half of the error in the middle of a line is taken from its start. `kind` is the
    type of its numbers.
    """
    low, high = (kind(own[0]) * kind(limit - own[1]) for limit in (-32768, 32767))
    outer = [kind(out[0]) * kind(limit - out[1]) for limit in (-32768, 32767)]
    step, inverse = (high - low) / kind(STEPS), kind(65536) / (outer[1] - outer[0])
    starts = low + np.arange(STEPS).astype(kind) * step
    following = low + np.arange(1, STEPS + 1).astype(kind) * step
    at, middle, after = (
        function(points.astype(np.float64)).astype(kind) for points in (starts, starts + step / kind(2), following)
    )
    first = rounded(at * inverse)
    between = rounded((after * inverse + first) / kind(2)) - rounded(middle * inverse)
    last = rounded(function(np.array([high], np.float64)).astype(kind) * inverse)
    return np.append(first - rounded(between / kind(2)), last).clip(-32768, 32767).astype(np.int64)


def number(node: TfliteNode, value: int) -> SSAValue:
    """A number of i32."""
    return node.splat(value, i32)


def entries(node: TfliteNode, table: np.ndarray, indices: SSAValue, role: str) -> SSAValue:
    """The entries, of i32, of a table at indices."""
    return node.emit(GatherOp, node.constant(table.astype(np.int32), f"{node.name}.{role}"), indices, axis=0)


def at_lines(node: TfliteNode, value: SSAValue, ends: np.ndarray, role: str = "lines") -> SSAValue:
    """The function with these ends of lines at integers of i32 within 16 bits."""
    index = node.emit(BitShiftOp, value, number(node, INDEX_BITS), direction="right")
    index = node.emit(AddOp, index, number(node, STEPS // 2))
    position = node.emit(BitwiseAndOp, value, number(node, (1 << INDEX_BITS) - 1))
    slope = entries(node, np.diff(ends).astype(np.int16), index, f"{role}.slopes")
    rise = node.emit(AddOp, node.emit(MulOp, slope, position), number(node, 1 << (INDEX_BITS - 1)))
    rise = node.emit(BitShiftOp, rise, number(node, INDEX_BITS), direction="right")
    return node.emit(AddOp, entries(node, ends[:-1], index, role), rise)


def interpolated(node: TfliteNode, function: Function) -> SSAValue:
    """A function of an operand of int16."""
    own, out = (
        (node.scale(item), int(node.quantization(item).zero_points[0])) for item in (node.tensor(0), node.output())
    )
    with np.errstate(over="ignore", invalid="ignore"):
        ends = lines(function, own, out, np.float32)
    return node.cast(at_lines(node, node.cast(node.input(0), i32), ends), i16)


UPWARD = (
    *(4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43, 44, 45),
    *(46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255),
)
"""The entries of TensorFlow Lite's table of sigmoids that are one above the nearest integer."""

SIGMOID = np.rint(65536 / (1 + np.exp(-np.arange(256) / 24))).astype(np.int64) + np.isin(np.arange(256), UPWARD)
"""65536 / (1 + e^(-i / 24)) for i from 0 to 255, as TensorFlow Lite has it."""


def sigmoid_of_table(node: TfliteNode) -> SSAValue:
    """LOGISTIC or TANH of an operand of int16, by lines between entries of one table: tanh(x) = 2 · sigmoid(2x) - 1."""
    multiplier, shift = _to_table(node, node.scale(node.tensor(0)))
    return node.cast(sigmoid_form(node, node.cast(node.input(0), i32), multiplier, shift, node.kind == "TANH"), i16)


def _to_table(node: TfliteNode, scale: float) -> tuple[int, int]:
    """The multiplier and the shift to the right from values to positions in the table, 3 · 4096 to 1."""
    logarithm = math.log2(scale)
    left = 12 + round(logarithm)
    if abs(logarithm - round(logarithm)) < 1e-3 and left in ((0, 1) if node.kind == "TANH" else (0,)):
        return 3 << left, 0
    multiplier, shift = float(np.float32(scale)) * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier, shift = multiplier * 2, shift + 1
    return int(multiplier), shift


def sigmoid_form(node: TfliteNode, value: SSAValue, multiplier: int, shift: int, is_tanh: bool) -> SSAValue:
    """The sigmoid or hyperbolic tangent, 32768 to 1 and of i32, of integers of i32 times multiplier / 2^shift."""
    moved = node.emit(MulOp, value, number(node, multiplier))
    if shift:
        moved = node.emit(AddOp, moved, number(node, 1 << (shift - 1)))
        moved = node.emit(BitShiftOp, moved, number(node, shift), direction="right")
    bits = 8 if is_tanh else 9
    size = node.emit(AbsOp, moved)
    index = node.emit(BitShiftOp, size, number(node, bits), direction="right")
    position = node.emit(BitwiseAndOp, size, number(node, (1 << bits) - 1))
    inside = node.emit(MinOp, index, number(node, 254))
    line = node.emit(MulOp, entries(node, SIGMOID[:-1], inside, "sigmoid"), number(node, 1 << bits))
    line = node.emit(AddOp, line, node.emit(MulOp, entries(node, np.diff(SIGMOID), inside, "slopes"), position))
    top = 0xFFFF << 8 if is_tanh else 0x7FFF << 10
    line = node.emit(WhereOp, node.emit(LessOp, index, number(node, 255)), line, number(node, top))
    above, below = (-(1 << 23) + (1 << 7), (1 << 23) + (1 << 7) - 1) if is_tanh else (1 << 9, (1 << 25) + (1 << 9) - 1)
    is_above = node.emit(GreaterOrEqualOp, moved, number(node, 0))
    found = node.emit(
        WhereOp, is_above, node.emit(AddOp, line, number(node, above)), node.emit(SubOp, number(node, below), line)
    )
    return node.emit(BitShiftOp, found, number(node, 8 if is_tanh else 10), direction="right")

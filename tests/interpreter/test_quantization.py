"""The meaning of quantization: written out in numpy, and the roundings of rescaled sums in exact numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import i32
from xdsl.ir import Block

from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.dialects.shapes import tensor
from glow_mlir.interpreter.scalar import FUNCTIONS
from glow_mlir.interpreter.semantics import apply_semantics


def rounded_once(x: float, y: float, z: float) -> np.float32:
    """x · y + z in exact fractions, rounded to f32: the nearer neighbour of what f64 gives, the even one of two."""
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf)]
    candidates = sorted((near, *around), key=lambda one: (abs(Fraction(float(one)) - exact), one.view(np.uint32) & 1))
    return candidates[0]


def test_fused_multiply_add_rounds_once() -> None:
    random = np.random.default_rng(0)
    x, y = random.integers(-(1 << 24), 1 << 24, (2, 4000)).astype(np.float32)
    scale = np.exp2(random.integers(-60, 0, 4000)).astype(np.float32)
    # Addends that leave sums next to half-way cases of f32.
    z = (-(x * y).astype(np.float64) * scale).astype(np.float32) + np.float32(1.0)
    found = FUNCTIONS[math.FmaOp](x, y * scale, z)
    expected = [rounded_once(*map(float, row)) for row in zip(x, y * scale, z, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


def multiplied_by_quantized_multiplier(x: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier of TensorFlow Lite, with division as in C; a positive shift is one to the left."""
    product = (x << max(shift, 0)) * multiplier
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    high = abs(nudged) >> 31
    high, right = high if nudged >= 0 else -high, max(-shift, 0)
    quotient = Fraction(abs(high), 1 << right) + Fraction(1, 2)
    return int(quotient) if high >= 0 else -int(quotient)


def test_rescaling_with_two_roundings_is_that_of_tensorflow_lite() -> None:
    random = np.random.default_rng(1)
    shift = random.integers(20, 50, 6000)
    magnitude = np.minimum(31, 31 - np.maximum(31 - shift, 0))
    x = random.integers(-(1 << 31), 1 << 31, 6000) >> (31 - magnitude) >> random.integers(0, 20, 6000)
    multiplier = random.integers(1 << 30, 1 << 31, 6000)
    # Products, and first quotients, that are half-way between two numbers.
    multiplier[::3], shift[::3] = 1 << 30, np.where(shift[::3] < 31, 31, shift[::3])
    types = [tensor((6000,), i32)] * 3
    op = IntegerRescaleOp.make(*Block(arg_types=types).args, to=i32, rounding="twice")
    (found,) = apply_semantics(op, [item.astype(np.int32) for item in (x, multiplier, shift)])
    rows = zip(x.tolist(), multiplier.tolist(), shift.tolist(), strict=True)
    expected = [multiplied_by_quantized_multiplier(one, by, 31 - to) for one, by, to in rows]
    np.testing.assert_array_equal(found, expected)


def test_the_shorter_rule_gives_the_same_for_shifts_from_32_on() -> None:
    random = np.random.default_rng(2)
    limit = 2**31 - 1
    x = np.concatenate([random.integers(-limit - 1, limit + 1, 6000), [-limit - 1, limit, -1, 0, 1, limit]])
    multiplier, shift = random.integers(-limit, limit + 1, x.size), random.integers(32, 63, x.size)
    multiplier[-6:], multiplier[::3] = limit, 1 << 30
    operands = [item.astype(np.int32) for item in (x, multiplier, shift)]
    types = [tensor((x.size,), i32)] * 3
    one, other = (
        apply_semantics(IntegerRescaleOp.make(*Block(arg_types=types).args, to=i32, rounding=rounding), operands)[0]
        for rounding in ("twice", "twice_right")
    )
    np.testing.assert_array_equal(one, other)

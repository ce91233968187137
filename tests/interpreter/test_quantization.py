"""The meaning of quantization: written out in numpy, and the single rounding of a rescaled sum in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from xdsl.dialects import math

from glow_mlir.interpreter.scalar import FUNCTIONS


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

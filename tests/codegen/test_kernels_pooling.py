"""Pooling kernels against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
from execute import Case, check_all, check_low, sample

from glow_mlir.dialects.glow_high.pooling import MaxPoolOp


def test_few_floats_are_compared_as_numbers_first():
    """Infinities of both signs add up to NaN, as a NaN does, which wins from any place; at borders, there are loops."""
    x = sample((1, 6, 6, 6))
    x[0, 2, 2, 0], x[0, 2, 3, 1], x[0, 3, 2, 2], x[0, 3, 3, 3] = (np.nan, -np.nan, np.nan, -np.inf)
    x[0, 2, 2, 4], x[0, 3, 3, 4], x[0, :, :, 5] = (np.inf, -np.inf, -np.inf)
    few = "scalar,costs.unrolled_taps=4"
    windows: list[dict[str, Any]] = [{}, {"strides": (2, 2), "pads": (1, 0, 0, 1)}, {"dilations": (2, 3)}]
    check_all([Case(MaxPoolOp, x, kernel_shape=(2, 2), **window) for window in windows], few)


def test_strided_operands():
    check_low(
        """
        glow_high.placeholder @x : tensor<1x6x6x40xf32> {input}
        glow_high.placeholder @y : tensor<1x5x5x64xf32> {state}
        glow_low.func @main(@x, @y) {
          %x = glow_low.weight @x : memref<1x6x6x40xf32>
          %y = glow_low.weight @y {mutable} : memref<1x5x5x64xf32>
          %a = glow_low.view %x : memref<1x6x6x40xf32> to memref<1x6x6x33xf32, strided<[1440, 240, 40, 1], offset: 7>>
          %b = glow_low.view %y : memref<1x5x5x64xf32> to memref<1x5x5x33xf32, strided<[1600, 320, 64, 1], offset: 20>>
          glow_low.max_pool @out %b, @in %a {kernel_shape = [2, 2]}
        }
        """,
        {"x": sample((1, 6, 6, 40)), "y": sample((1, 5, 5, 64), seed=1)},
    )

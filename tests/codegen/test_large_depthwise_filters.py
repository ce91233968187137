"""Depthwise convolutions by filters of any size: loops over lines of large ones compute what the interpreter does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, check_all, runnable_targets

from glow_mlir.dialects.glow_high.convolution import ConvOp

RANDOM = np.random.default_rng(5)
FILTERS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 12, 13, 24), (9, 9), {"pads": (4, 4, 4, 4)}),
    ((1, 9, 14, 7), (31, 31), {"pads": (15, 15, 15, 15)}),
    ((1, 20, 9, 33), (17, 5), {"pads": (8, 2, 8, 2), "strides": (2, 1)}),
    ((1, 11, 30, 5), (5, 15), {"pads": (2, 0, 1, 0), "strides": (1, 3), "dilations": (2, 1)}),
    ((1, 4, 90, 3), (2, 70), {"pads": (0, 8, 0, 3), "dilations": (1, 1)}),
    ((3, 150, 16), (101,), {"pads": (50, 50)}),
    ((1, 150, 3), (67,), {"pads": (0, 9), "strides": (2,)}),
    ((1, 6, 7, 8, 9), (5, 5, 5), {"pads": (2, 2, 2, 2, 2, 2)}),
    ((0, 12, 13, 24), (9, 9), {"pads": (4, 4, 4, 4)}),
]
"""Shape of images with channels last → sizes of filters, and how they move."""


def cases(dtype: str, accumulators: str) -> list[Case]:
    """Depthwise convolutions of numbers of a type, with and without a bias."""
    found: list[Case] = []
    for number, (shape, kernel, window) in enumerate(FILTERS):
        channels = shape[-1]
        image, filter_ = RANDOM.standard_normal(shape), RANDOM.standard_normal((channels, *kernel, 1)) / 8
        if np.dtype(dtype).kind != "f":
            image, filter_ = RANDOM.integers(-90, 90, shape), RANDOM.integers(-90, 90, (channels, *kernel, 1))
        operands = [image.astype(dtype), filter_.astype(dtype)]
        if number % 2 and dtype == accumulators:
            operands.append(RANDOM.standard_normal(channels).astype(accumulators))
        found.append(Case(ConvOp, *operands, group=channels, **window))
    return found


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize(
    ("dtype", "accumulators", "tolerance"),
    [("float32", "float32", 2e-5), ("float64", "float64", 1e-12), ("float16", "float32", 4e-3), ("int8", "int32", 0)],
)
def test_filters_of_any_size(dtype: str, accumulators: str, tolerance: float, target: str) -> None:
    check_all(cases(dtype, accumulators), target, tolerance)

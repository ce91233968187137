"""Resizing axis by axis, with as many inputs per result as antialiasing takes: machine code and interpreter agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, check_all, runnable_targets

from glow_mlir.dialects.glow_high.resize import ResizeOp

RANDOM = np.random.default_rng(3)
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1, 3, 64, 50), (1, 3, 21, 23)),
    ((2, 40, 30, 3), (2, 11, 8, 3)),
    ((1, 4, 150, 9), (1, 4, 7, 9)),
    ((2, 5, 90), (2, 5, 31)),
    ((1, 2, 12, 10, 14), (1, 2, 5, 13, 6)),
    ((1, 17, 8, 8), (1, 17, 15, 21)),
    ((5, 2), (13, 2)),
    ((150,), (9,)),
]
"""Shapes before → after: channels first and last, one axis to three, smaller and larger."""
MODES: list[dict[str, Any]] = [
    {"mode": "linear", "antialias": True},
    {"mode": "cubic", "antialias": True, "exclude_outside": True},
    {"mode": "cubic", "coordinates": "align_corners"},
    {"mode": "linear", "antialias": True, "coordinates": "tf_crop_and_resize", "extrapolation": 3.0},
]


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("float64", 1e-12), ("float16", 4e-3)])
def test_axes_one_after_the_other(dtype: str, tolerance: float, target: str) -> None:
    images = {shape: (RANDOM.random(shape) * 100).astype(dtype) for shape, _ in SHAPES}
    cases = [Case(ResizeOp, images[before], shape=after, **mode) for before, after in SHAPES for mode in MODES]
    check_all(cases, target, tolerance)

"""The kernel of images that are sums of their windows, against the interpreter."""

from __future__ import annotations

import math
from typing import Any

import pytest
from execute import Case, check_all, runnable_targets, sample

from glow_mlir.dialects.glow_high.convolution import Col2ImOp
from glow_mlir.dialects.windows import Window

WINDOWS = [
    Window((3, 2), (1, 1), (1, 0, 0, 1), (1, 1)),
    Window((3, 2), (2, 3), (0, 1, 1, 1), (1, 1)),
    Window((3, 2), (1, 1), (0, 0, 0, 0), (2, 2)),
]


def case(window: Window, image: tuple[int, ...], dtype: str) -> Case:
    """Columns that fit an image of two channels."""
    columns = sample((2, 2 * math.prod(window.kernel), math.prod(window.outputs(image))), dtype)
    lists: dict[str, Any] = {"strides": window.strides, "pads": window.pads, "dilations": window.dilations}
    return Case(Col2ImOp, columns, image_shape=image, block_shape=window.kernel, **lists)


@pytest.mark.parametrize("target", runnable_targets())
def test_windows(target: str):
    volume = Window((2, 2, 2), (2, 2, 2), (0,) * 6, (1, 1, 1))
    images = [case(window, (8, 19), dtype) for window in WINDOWS for dtype in ("f4", "i4")]
    check_all([*images, case(volume, (4, 4, 4), "f4"), case(WINDOWS[0], (4, 5), "f8")], target)


def test_half_floats():
    check_all([case(WINDOWS[0], (8, 19), "f2")], tolerance=3e-3)

"""Gradients of resizing: modes, factors that repeat elements and such that do not, what lies outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from gradients import Emit, check_gradients
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.resize import ResizeOp

LAST, FIRST = (2, 3, 4, 2), (1, 2, 3, 4)
CROP = {"coordinates": "tf_crop_and_resize", "roi": (0.0, 0.2, -0.4, 0.0, 1.0, 0.9, 0.7, 1.0)}

CASES: dict[str, tuple[tuple[int, ...], Mapping[str, Any]]] = {
    "nearest, repeated": (LAST, {"shape": (2, 6, 12, 2), "coordinates": "asymmetric", "rounding": "floor"}),
    "nearest, channels first": (FIRST, {"shape": (1, 2, 6, 8)}),
    "nearest, uneven": (LAST, {"shape": (2, 5, 7, 2)}),
    "nearest, smaller": (LAST, {"shape": (2, 2, 8, 2), "coordinates": "align_corners"}),
    "linear, larger": (LAST, {"shape": (2, 6, 7, 2), "mode": "linear"}),
    "linear, channels first": (FIRST, {"shape": (1, 2, 7, 8), "mode": "linear", "coordinates": "align_corners"}),
    "linear, smaller": (LAST, {"shape": (2, 2, 2, 2), "mode": "linear", "antialias": True}),
    "cubic": (FIRST, {"shape": (1, 2, 6, 5), "mode": "cubic", "cubic_coefficient": -0.5}),
    "cubic without what lies outside": (LAST, {"shape": (2, 4, 8, 2), "mode": "cubic", "exclude_outside": True}),
    "crop": (LAST, {"shape": (2, 4, 5, 2), "mode": "linear", "extrapolation": 0.5, **CROP}),
}


@pytest.mark.parametrize("case", CASES)
def test_resize(case: str) -> None:
    shape, properties = CASES[case]

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(ResizeOp, values["x"], **properties)
        return emit(MulOp, y, y)

    check_gradients(graph, {"x": np.random.default_rng(3).uniform(-1, 1, shape)})

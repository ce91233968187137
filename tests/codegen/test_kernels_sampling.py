"""Kernels that sample images between their elements, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from execute import Case, check, check_all, runnable_targets, sample

from glow_mlir.dialects.glow_high.sampling import MODES, PADDINGS, GridSampleOp


def grid(*shape: int, dtype: str = "f4") -> np.ndarray:
    """Random places, some of which lie outside the image."""
    return np.random.default_rng(1).uniform(-1.6, 1.6, shape).astype(dtype)


@pytest.mark.parametrize("target", runnable_targets())
def test_grid_sample(target: str):
    x, places = sample((2, 4, 6, 19)), grid(2, 5, 7, 2)
    check_all(
        [
            Case(GridSampleOp, x, places, mode=mode, padding=padding, align_corners=aligned)
            for mode in MODES
            for padding in PADDINGS
            for aligned in (False, True)
        ],
        target,
    )


def test_grid_sample_of_all_ranks_and_types():
    check_all(
        [
            Case(GridSampleOp, sample((2, 9, 3)), grid(2, 17, 1), padding="border"),
            Case(GridSampleOp, sample((2, 4, 6, 3, 5)), grid(2, 3, 3, 4, 3)),
            Case(GridSampleOp, sample((2, 1, 1, 3)), grid(2, 3, 3, 2), padding="reflection", align_corners=True),
            Case(GridSampleOp, sample((2, 4, 6, 1), "f2"), grid(2, 5, 7, 2, dtype="f2")),
            Case(GridSampleOp, sample((2, 4, 6, 1), "f8"), grid(2, 5, 7, 2, dtype="f4"), mode="cubic"),
            Case(GridSampleOp, sample((2, 4, 6, 3), "i8"), grid(2, 5, 7, 2), mode="nearest"),
            Case(GridSampleOp, sample((2, 4, 6, 3), "?"), grid(2, 5, 7, 2), mode="nearest", padding="reflection"),
        ]
    )


def test_what_is_outside_is_zero_even_beside_infinities():
    x = np.full((1, 2, 2, 3), np.inf, np.float32)
    check(GridSampleOp, x, np.array([[[[5, 5], [np.nan, 0], [1e30, -1e30], [0, 0]]]], np.float32))

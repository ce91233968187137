"""Kernels that sample images between their elements, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, check, check_all, runnable_targets, sample

from glow_mlir.dialects.glow_high.sampling import (
    MODES,
    PADDINGS,
    POOLINGS,
    DeformColumnsOp,
    DeformConvOp,
    GridSampleOp,
    RoiAlignOp,
    RoiPoolOp,
)


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


REGIONS = np.array(
    [[0, 0, 9, 9], [3, 2, 11, 6], [-3, -3, 2, 2], [5, 5, 4, 4], [2, 2, 2.5, 2.5], [30, 30, 40, 40]], np.float32
)
"""Some are beyond the image, one is turned over, and one is smaller than an element."""
IMAGES = np.array([0, 1, 1, 0, 1, 0])


@pytest.mark.parametrize("target", runnable_targets())
def test_roi_align(target: str):
    common: dict[str, Any] = {"output_shape": (3, 2), "spatial_scale": 0.75}
    x = sample((2, 8, 10, 19))
    cases = [
        Case(RoiAlignOp, x, REGIONS, IMAGES, mode=mode, sampling_ratio=ratio, half_pixel=half, **common)
        for mode in POOLINGS
        for ratio, half in ((0, False), (0, True), (2, True))
    ]
    doubles = REGIONS.astype("f8"), IMAGES.astype("i4")
    check_all([*cases, Case(RoiAlignOp, sample((2, 8, 10, 3), "f8"), *doubles, **common)], target)


def test_roi_align_of_half_floats():
    check(RoiAlignOp, sample((2, 8, 10, 3), "f2"), REGIONS.astype("f2"), IMAGES, output_shape=(3, 2), tolerance=4e-3)


@pytest.mark.parametrize("target", runnable_targets())
def test_roi_pool(target: str):
    odd = np.array([[0.5, 1.5, 2.49999, 3.5], [-9, -9, -7, -7], [-1e9, -1e9, 1e9, 1e9], [np.nan, 1, np.inf, 5]], "f4")
    regions = np.concatenate([REGIONS, odd])
    regions = np.concatenate([np.resize(IMAGES, len(regions))[:, None], regions], axis=1).astype("f4")
    x = sample((2, 8, 10, 19))
    cases = [
        Case(RoiPoolOp, x, regions, output_shape=shape, spatial_scale=scale)
        for shape, scale in (((3, 2), 0.75), ((1, 1), 1.0), ((9, 11), 1.0))
    ]
    check_all([*cases, Case(RoiPoolOp, sample((2, 8, 10, 3), "f8"), regions.astype("f8"), output_shape=(2, 2))], target)
    check(RoiPoolOp, sample((2, 8, 10, 3), "f2"), regions[:6].astype("f2"), output_shape=(3, 2))


@pytest.mark.parametrize("target", runnable_targets())
def test_deform_conv(target: str):
    x, offset, mask = sample((2, 8, 5, 8)), sample((2, 4, 5, 2 * 6 * 2)), np.abs(sample((2, 4, 5, 2 * 6)))
    window: dict[str, Any] = {"strides": (2, 1), "pads": (1, 0, 1, 1), "offset_group": 2}
    check_all(
        [
            Case(DeformColumnsOp, x, offset, mask, kernel_shape=(3, 2), **window),
            Case(DeformConvOp, x, sample((12, 3, 2, 8)), offset, sample((12,)), None, **window),
            Case(DeformConvOp, x, sample((12, 3, 2, 2)), offset, sample((12,)), mask, group=4, **window),
            Case(DeformConvOp, sample((2, 9, 4)), sample((5, 3, 4)), sample((2, 7, 3)), dilations=(1,)),
            Case(DeformConvOp, sample((1, 3, 3, 2), "f8"), sample((4, 2, 2, 2), "f8"), sample((1, 2, 2, 8), "f8")),
        ],
        target,
        tolerance=2e-5,
    )

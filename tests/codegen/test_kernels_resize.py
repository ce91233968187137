"""The kernel of resizing, and what it leaves to the lowering, against the interpreter."""

from __future__ import annotations

import pytest
from execute import check, runnable_targets, sample

from glow_mlir.dialects.glow_high.resize import COORDINATES, MODES, ResizeOp

RULES = [rule for rule in COORDINATES if rule != "tf_crop_and_resize"]


@pytest.mark.parametrize("coordinates", RULES)
@pytest.mark.parametrize("mode", MODES)
def test_modes(mode: str, coordinates: str):
    for before, after in (
        ((1, 5, 6, 19), (1, 10, 12, 19)),
        ((1, 3, 5, 6), (1, 3, 7, 13)),
        ((2, 9), (2, 4)),
        ((1, 3, 4, 5, 4), (1, 3, 5, 8, 7)),
    ):
        check(ResizeOp, sample(before), shape=after, mode=mode, coordinates=coordinates)


@pytest.mark.parametrize("dtype", ["f8", "f2", "u1", "i8", "?"])
def test_element_types(dtype: str):
    check(ResizeOp, sample((1, 5, 6, 19), dtype), shape=(1, 10, 18, 19))
    check(ResizeOp, sample((1, 3, 6, 19), dtype), shape=(1, 3, 7, 9))


def test_f64_is_interpolated_in_f64():
    check(ResizeOp, sample((1, 5, 6, 3), "f8"), shape=(1, 9, 9, 3), mode="cubic")


def test_what_is_lowered():
    check(ResizeOp, sample((1, 3, 9, 9)), shape=(1, 3, 4, 4), mode="linear", antialias=True)
    roi = (0.0, 0.0, 0.2, 0.2, 1.0, 1.0, 0.8, 1.3)
    check(ResizeOp, sample((1, 3, 6, 9)), shape=(1, 3, 7, 9), coordinates="tf_crop_and_resize", roi=roi, mode="linear")


def test_nothing_to_do():
    check(ResizeOp, sample((1, 3, 6, 9)), shape=(1, 3, 6, 9))


@pytest.mark.parametrize("target", runnable_targets())
def test_targets(target: str):
    check(ResizeOp, sample((1, 5, 6, 40)), shape=(1, 9, 11, 40), mode="linear", target=target)
    check(ResizeOp, sample((1, 5, 6, 40)), shape=(1, 10, 12, 40), target=target)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("factor", [2, 3, 8, 9])
def test_repetitions_along_vectors(factor: int, target: str):
    for width in (1, 5, 35):
        check(ResizeOp, sample((1, 2, 3, width)), shape=(1, 2, 6, width * factor), target=target)
        check(ResizeOp, sample((2, width), "i1"), shape=(2, width * factor), target=target)

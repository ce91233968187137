"""Kernels of softmax and normalization, against the interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from execute import Case, check, check_all, runnable_targets
from xdsl.dialects.builtin import f32

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.kernels.expressions.side_by_side import normalization_alone, softmax_alone, stands_alone
from glow_mlir.codegen.lines import Lines
from glow_mlir.dialects.glow_high.normalization import LrnOp


@pytest.mark.parametrize(
    ("shape", "softmax", "wide", "narrow"),
    [
        ((512, 63), False, False, False),
        ((512, 64), False, True, False),
        ((512, 192), False, True, False),
        ((512, 256), True, True, True),
        ((128, 256), True, True, False),
        ((64, 1024), True, True, True),
        ((32768, 96), False, True, False),
        ((32768, 128), True, True, False),
    ],
)
def test_long_lines_are_taken_alone(shape: tuple[int, int], softmax: bool, wide: bool, narrow: bool):
    """Shorter ones where the caches do not hold all of them."""
    lines = Lines.of(shape, (1,), [(shape[1], 1), (shape[1], 1)])
    for name, normalization in (("avx512", wide), ("avx2", narrow)):
        target = replace(PRESETS[name], l2_bytes=512 << 10, l3_bytes=32 << 20)
        assert stands_alone(lines, f32, softmax_alone(target)) == softmax
        assert stands_alone(lines, f32, normalization_alone(target)) == normalization


def images(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Elements on both sides of 0."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("target", runnable_targets())
def test_response_to_neighbouring_channels(target: str) -> None:
    """Windows along rows in memory, between axes that go on in each other, and along the first axis."""
    shapes = [((2, 3, 5, 40), -1), ((2, 40, 5, 7), 1), ((20, 3, 9), 0), ((6,), 0)]
    check_all([Case(LrnOp, images(*shape), axis=axis, size=5, alpha=0.5) for shape, axis in shapes], target)
    check_all([Case(LrnOp, images(2, 9, 7), axis=1, size=size, beta=0.6, bias=2.0) for size in (1, 4, 12)], target)


def test_response_to_neighbouring_channels_of_halves() -> None:
    check(LrnOp, images(2, 9, 17, dtype="float16"), axis=1, size=3, alpha=0.5)

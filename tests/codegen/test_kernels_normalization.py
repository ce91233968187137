"""Kernels of softmax and normalization, against the interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from execute import check, runnable_targets, sample
from xdsl.dialects.builtin import f32

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.kernels.side_by_side import normalization_alone, softmax_alone, stands_alone
from glow_mlir.codegen.lines import Lines
from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.glow_high.base import HighOp

SOFT = [ops.SoftmaxOp, ops.LogSoftmaxOp]


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("operator", SOFT)
def test_softmax(operator: type[HighOp], dtype: str):
    for shape, axis in (((3, 1000), 1), ((3, 37), -1), ((2, 21, 33), 1), ((5,), 0), ((2, 3, 4, 5), 0), ((), 0)):
        check(operator, np.asarray(5 * sample(shape, dtype)), axis=axis)


@pytest.mark.parametrize("operator", SOFT)
def test_extremes(operator: type[HighOp]):
    x = np.array([[1e30, -1e30, 0], [-np.inf, 0, 1], [np.nan, 0, 1], [-np.inf] * 3, [np.inf, 0, 1]], np.float32)
    check(operator, x, axis=1)


@pytest.mark.parametrize("shape", [(4, 37), (2, 6, 100), (8, 1), (12, 16), (4, 2100), (4, 256), (8, 64)])
def test_lines_side_by_side(shape: tuple[int, ...]):
    for operator in SOFT:
        check(operator, 5 * sample(shape), axis=-1)
    check(ops.LayerNormalizationOp, sample(shape), sample(shape[-1:]), sample((*shape[:-1], 1)))
    check(ops.RmsNormalizationOp, sample(shape, "f8"), sample(shape[-1:], "f8"))


@pytest.mark.parametrize("operator", SOFT)
def test_lines_side_by_side_do_not_mix(operator: type[HighOp]):
    x = sample((8, 21))
    x[1, 20], x[2, 3], x[6] = np.nan, np.inf, -np.inf
    check(operator, x, axis=1)


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


def test_hardmax_is_lowered():
    check(ops.HardmaxOp, sample((3, 17)), axis=1)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_layer_normalization(dtype: str):
    check(ops.LayerNormalizationOp, *(sample(s, dtype) for s in ((3, 65), (65,), (65,))), tolerance=TOLERANCE[dtype])
    check(ops.LayerNormalizationOp, sample((3, 65), dtype), sample((65,), dtype), tolerance=TOLERANCE[dtype])


TOLERANCE = {"f4": 1e-5, "f8": 1e-12, "f2": 5e-3}


def test_scale_that_broadcasts():
    check(ops.LayerNormalizationOp, sample((2, 3, 5, 7)), sample((5, 7)), sample((7,)), axis=2)
    check(ops.LayerNormalizationOp, sample((2, 3, 5, 7)), sample((3, 1, 1)), sample((1,)), axis=1)
    check(ops.LayerNormalizationOp, sample((4, 1)), sample((1,)), sample((4, 1)))


def test_rms_normalization():
    check(ops.RmsNormalizationOp, sample((3, 65)), sample((65,)))
    check(ops.RmsNormalizationOp, sample((2, 3, 40), "f8"), sample((3, 40), "f8"), axis=1)


@pytest.mark.parametrize("target", runnable_targets())
def test_targets(target: str):
    check(ops.SoftmaxOp, sample((3, 100)), target=target)
    check(ops.SoftmaxOp, sample((4, 30)), target=target)
    check(ops.LogSoftmaxOp, sample((100, 3)), axis=0, target=target)
    check(ops.LayerNormalizationOp, sample((3, 100)), sample((100,)), sample((100,)), target=target)

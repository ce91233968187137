"""Kernels of softmax and normalization, against the interpreter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import f32

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.kernels.side_by_side import normalization_alone, softmax_alone, stands_alone
from glow_mlir.codegen.lines import Lines


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

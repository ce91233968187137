"""The kernel of attention, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import check, runnable_targets, sample

from glow_mlir.dialects.glow_high.attention import AttentionOp

SIZES = [(1, 1, 1, 1), (1, 37, 8, 5), (5, 17, 3, 33), (13, 64, 16, 32), (50, 197, 64, 70), (65, 130, 32, 64)]
"""Queries, keys, and elements of a key and of a value."""


def attend(sizes: tuple[int, int, int, int], *mask: np.ndarray, dtype: str = "f4", **options: Any) -> None:
    """Compare one attention of three heads."""
    queries, keys, depth, width = sizes
    shapes = ((3, queries, depth), (3, keys, depth), (3, keys, width))
    tolerance = {"f4": 1e-5, "f8": 1e-12, "f2": 2e-2}[dtype]
    check(AttentionOp, *(sample(shape, dtype) for shape in shapes), *mask, tolerance=tolerance, **options)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("sizes", SIZES)
def test_sizes(sizes: tuple[int, int, int, int], target: str):
    attend(sizes, target=target)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_scale(dtype: str):
    attend((9, 21, 12, 20), dtype=dtype, scale=0.25)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("past", [0, 3])
def test_causal(past: int, target: str):
    attend((40, 43, 8, 16), target=target, causal=True, past=past)
    attend((70, 30, 8, 70), target=target, causal=True, past=past)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("shape", [(), (1,), (37,), (1, 37), (9, 1), (9, 37), (3, 1, 37), (3, 9, 37), (3, 1, 1)])
def test_masks(shape: tuple[int, ...], target: str):
    attend((9, 37, 8, 16), sample(shape), target=target)
    attend((9, 37, 8, 16), sample(shape), target=target, causal=True, past=20)

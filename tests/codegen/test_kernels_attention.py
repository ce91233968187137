"""The kernel of attention, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from execute import check, runnable_targets, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from glow_mlir.dialects.glow_high.attention import AttentionOp

SIZES = [
    (1, 1, 1, 1),
    (1, 37, 8, 5),
    (3, 130, 80, 72),
    (5, 17, 3, 33),
    (13, 64, 16, 32),
    (50, 197, 64, 70),
    (65, 130, 32, 64),
]
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
    attend((3, 43, 8, 16), target=target, causal=True, past=past)
    attend((70, 30, 8, 70), target=target, causal=True, past=past)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("shape", [(), (1,), (37,), (1, 37), (9, 1), (9, 37), (3, 1, 37), (3, 9, 37), (3, 1, 1)])
def test_masks(shape: tuple[int, ...], target: str):
    attend((9, 37, 8, 16), sample(shape), target=target)
    attend((9, 37, 8, 16), sample(shape), target=target, causal=True, past=20)


@pytest.mark.parametrize("shape", [(), (37,), (2, 1), (2, 37), (3, 1, 37)])
def test_masks_of_few_queries(shape: tuple[int, ...]):
    attend((2, 37, 8, 16), sample(shape), scale=0.5)
    attend((2, 37, 8, 16), sample(shape), causal=True, past=20)


def test_what_a_query_does_not_see_counts_nothing():
    mask = np.zeros((4, 37), np.float32)
    mask[0, 3:], mask[1, :36], mask[2, ::2] = -np.inf, -3e38, -1e4
    attend((4, 37, 8, 16), mask)
    mask[3] = -np.inf
    attend((4, 37, 8, 16), mask)


def test_scores_far_apart():
    query, key, value = (sample((2, 20, 8)) for _ in range(3))
    check(AttentionOp, 100 * query, key, value)
    query[0, 3], key[1, 5] = np.nan, np.inf
    check(AttentionOp, query, key, value)


def test_batches_that_broadcast():
    query, key, value = sample((2, 3, 7, 8)), sample((2, 1, 9, 8)), sample((9, 5))
    check(AttentionOp, query, key, value, sample((3, 1, 9)))
    check(AttentionOp, query[0, 0], key, value)


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_any_attention(data: st.DataObject):
    queries, keys = (data.draw(st.sampled_from([1, 2, 5, 16, 33, 66])) for _ in range(2))
    depth, width = (data.draw(st.sampled_from([1, 3, 8, 17, 32, 80])) for _ in range(2))
    rows, columns = (data.draw(st.sampled_from([1, size])) for size in (queries, keys))
    mask = [sample((rows, columns))] if data.draw(st.booleans()) else []
    target, scale = data.draw(st.sampled_from(runnable_targets())), data.draw(st.sampled_from([1.0, 0.125]))
    causal = data.draw(st.booleans())
    past = data.draw(st.integers(0, 40)) if causal else 0
    attend((queries, keys, depth, width), *mask, scale=scale, causal=causal, past=past, target=target)

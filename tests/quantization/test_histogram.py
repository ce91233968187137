"""Histograms are exact, whatever comes in which order and in which batches."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glow_mlir.quantization.histogram import Histogram

NUMBERS = st.lists(st.floats(width=32, allow_nan=True) | st.integers(-9, 9).map(float), max_size=40)
BINS = st.sampled_from([2, 3, 7, 64])


def counted(parts: list[list[float]], bins: int) -> Histogram:
    """The histogram of some batches."""
    histogram = Histogram(bins)
    for part in parts:
        histogram.add(np.array(part, np.float32))
    return histogram


def state(histogram: Histogram) -> str:
    """All that a histogram has."""
    return json.dumps(histogram.to_json())


@given(first=NUMBERS, second=NUMBERS, bins=BINS)
def test_batches_and_their_order_make_no_difference(first: list[float], second: list[float], bins: int) -> None:
    whole = counted([first + second], bins)
    assert state(whole) == state(counted([second, first], bins))
    merged = counted([second], bins)
    merged.merge(counted([first], bins))
    assert state(whole) == state(merged)


@given(numbers=NUMBERS, bins=BINS)
def test_each_number_is_in_its_bin(numbers: list[float], bins: int) -> None:
    histogram = counted([numbers], bins)
    finite = np.array(numbers, np.float32)
    finite = finite[np.isfinite(finite)].astype(np.float64)
    assert histogram.total == finite.size
    if not finite.size:
        return
    assert (histogram.low, histogram.high) == (finite.min(), finite.max())
    begins = np.ldexp(histogram.first + np.arange(bins + 1.0), histogram.exponent)
    expected = [int(((finite >= low) & (finite < high)).sum()) for low, high in pairwise(begins)]
    assert histogram.counts.tolist() == expected


@given(numbers=NUMBERS, bins=BINS)
def test_what_is_written_is_read(numbers: list[float], bins: int) -> None:
    histogram = counted([numbers], bins)
    if histogram.total:
        assert state(Histogram.from_json(json.loads(state(histogram)), bins)) == state(histogram)


def test_half_of_the_bins_are_in_use() -> None:
    histogram = counted([np.linspace(-3.0, 11.0, 50_000).tolist()], 2048)
    assert np.count_nonzero(histogram.counts) > 1000


@pytest.mark.parametrize(
    "damage",
    [
        {"min": 3.0},
        {"max": "x"},
        {"counts": [1] * 99},
        {"counts": []},
        {"counts": [-1, 2]},
        {"exponent": 1},
        {"first": 7},
        {"min": float("-inf")},
    ],
)
def test_damage_is_an_error(damage: dict[str, object]) -> None:
    data = counted([[1.0, 2.0]], 8).to_json() | damage
    with pytest.raises((ValueError, TypeError)):
        Histogram.from_json(data, 8)

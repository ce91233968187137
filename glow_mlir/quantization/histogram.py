"""Incremental histograms with exact counts, independent of the order of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

BINS = 2048
"""Default number of bins."""

MIN_BINS = 2
"""Minimum number of bins: separates negative numbers from others."""

_DENORMAL = -149
"""Exponent of the smallest f32, the lower bound of bin widths."""

_MANTISSA = 24
"""Binary digits of f32: narrower bins separate no two numbers."""


class Histogram:
    """
    Counts of numbers in bins of equal width; at least half of the bins are in use.

    The width is a power of two, 2^`exponent`, and each bin begins at a multiple of it: bin i covers (`first` + i)·width
    up to the next one. If the range grows, bins are merged in pairs: counts stay exact, and the state depends only on
    the numbers, not on their order or batches. (Glow redistributes the counts of old bins among new ones instead.)
    Numbers that are not finite are ignored.
    """

    def __init__(self, bins: int = BINS) -> None:
        assert bins >= MIN_BINS
        self.bins = bins
        self.low, self.high = math.inf, -math.inf
        """The smallest and the largest number; infinite while empty."""
        self.exponent, self.first = _DENORMAL, 0
        self.counts = np.zeros(bins, np.int64)

    @property
    def total(self) -> int:
        """The number of counted numbers."""
        return int(self.counts.sum())

    def mean(self) -> float:
        """The mean of the numbers, which must exist, with each at the center of its bin."""
        return float((self.counts * self.centers()).sum() / self.total)

    def centers(self) -> np.ndarray:
        """The center of each bin, clipped to the range of the numbers."""
        middles = np.ldexp(self.first + np.arange(self.bins) + 0.5, self.exponent)
        return np.clip(middles, self.low, self.high)

    def add(self, numbers: np.ndarray) -> None:
        """Count the numbers of an array of any shape."""
        finite = numbers[np.isfinite(numbers)].astype(np.float64) + 0.0  # Do not distinguish -0 and 0.
        if not finite.size:
            return
        self._cover(float(finite.min()), float(finite.max()))
        bin_numbers = np.floor(np.ldexp(finite, -self.exponent)).astype(np.int64)
        self.counts += np.bincount(bin_numbers - self.first, minlength=self.bins)

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram with the same number of bins."""
        assert other.bins == self.bins
        if other.low > other.high:
            return
        self._cover(other.low, other.high)
        self.counts += _moved(other, self.exponent, self.first)

    def _cover(self, low: float, high: float) -> None:
        """Extend the bins to cover `low` to `high` and their present range."""
        low, high = min(low, self.low), max(high, self.high)
        exponent = _least_exponent(low, high, self.bins)
        first = math.floor(math.ldexp(low, -exponent))
        self.counts = _moved(self, exponent, first)
        self.low, self.high, self.exponent, self.first = low, high, exponent, first

    def to_json(self) -> dict[str, Any]:
        """The histogram as JSON values, without empty bins at its end."""
        used = np.flatnonzero(self.counts)
        counts = self.counts[: used[-1] + 1] if used.size else self.counts[:0]
        ends = {"min": self.low, "max": self.high}
        return {**ends, "exponent": self.exponent, "first": self.first, "counts": counts.tolist()}

    @staticmethod
    def from_json(data: Any, bins: int) -> Histogram:
        """Read the output of `to_json`; raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        found = Histogram(bins)
        low, high, counts = float(data["min"]), float(data["max"]), np.array(data["counts"], np.int64)
        if not -math.inf < low <= high < math.inf or counts.ndim != 1 or not 0 < counts.size <= bins:
            raise ValueError("a histogram has a range, and no more counts than bins")
        found._cover(low, high)
        if (found.exponent, found.first) != (data["exponent"], data["first"]) or counts.min() < 0 or not counts.any():
            raise ValueError("the bins of a histogram do not follow from its range")
        found.counts[: counts.size] = counts
        return found


def _least_exponent(low: float, high: float, bins: int) -> int:
    """The exponent of the narrowest bins that cover `low` to `high` with at most `bins` bins."""
    largest = max(-low, high)
    exponent = max(_DENORMAL, math.frexp(largest)[1] - _MANTISSA) if largest else _DENORMAL
    if high > low:
        exponent = max(exponent, math.frexp((high - low) / bins)[1] - 1)
    while math.floor(math.ldexp(high, -exponent)) - math.floor(math.ldexp(low, -exponent)) >= bins:
        exponent += 1
    return exponent


def _moved(source: Histogram, exponent: int, first: int) -> np.ndarray:
    """The counts of a histogram in bins that are at least as wide."""
    counts = np.zeros(source.bins, np.int64)
    used = np.flatnonzero(source.counts)
    bin_numbers = (source.first + used) >> min(exponent - source.exponent, 62)
    np.add.at(counts, bin_numbers - first, source.counts[used])
    return counts

"""Histograms as running state: exact counts, whatever comes in which order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

BINS = 2048
"""Bins of a histogram, unless it is said otherwise."""

MIN_BINS = 2
"""What it takes to tell negative numbers from others."""

_DENORMAL = -149
"""The exponent of the smallest f32, than which no bin is narrower."""

_MANTISSA = 24
"""Binary digits of an f32: bins that are narrower tell no two numbers apart."""


class Histogram:
    """
    How often numbers occurred, in bins of one width, of which at least half are in use.

    The width is a power of two, 2^`exponent`, and each bin begins at a multiple of it: bin i has the numbers from
    (`first` + i)·width up to the next one. Where the range grows, bins are joined in pairs, so that counts stay exact,
    and the state depends on the numbers alone, not on their order, nor on how they came in batches. (Glow shares out
    the counts of old bins among new ones instead.) Numbers that are not finite are left out.
    """

    def __init__(self, bins: int = BINS) -> None:
        assert bins >= MIN_BINS
        self.bins = bins
        self.low, self.high = math.inf, -math.inf
        """The smallest and the largest number; infinite as long as there is none."""
        self.exponent, self.first = _DENORMAL, 0
        self.counts = np.zeros(bins, np.int64)

    @property
    def total(self) -> int:
        """How many numbers there are."""
        return int(self.counts.sum())

    def mean(self) -> float:
        """The mean of the numbers, of which there are some, as if each were in the middle of its bin."""
        return float((self.counts * self.centers()).sum() / self.total)

    def centers(self) -> np.ndarray:
        """The middle of each bin, within the range of the numbers."""
        middles = np.ldexp(self.first + np.arange(self.bins) + 0.5, self.exponent)
        return np.clip(middles, self.low, self.high)

    def add(self, numbers: np.ndarray) -> None:
        """Count the numbers of an array of any shape."""
        finite = numbers[np.isfinite(numbers)].astype(np.float64) + 0.0  # There is one zero.
        if not finite.size:
            return
        self._cover(float(finite.min()), float(finite.max()))
        places = np.floor(np.ldexp(finite, -self.exponent)).astype(np.int64)
        self.counts += np.bincount(places - self.first, minlength=self.bins)

    def merge(self, other: Histogram) -> None:
        """Count the numbers of another histogram, with as many bins, too."""
        assert other.bins == self.bins
        if other.low > other.high:
            return
        self._cover(other.low, other.high)
        self.counts += _moved(other, self.exponent, self.first)

    def _cover(self, low: float, high: float) -> None:
        """Make the bins reach from `low` to `high`, and over what they have."""
        low, high = min(low, self.low), max(high, self.high)
        exponent = _least_exponent(low, high, self.bins)
        first = math.floor(math.ldexp(low, -exponent))
        self.counts = _moved(self, exponent, first)
        self.low, self.high, self.exponent, self.first = low, high, exponent, first

    def to_json(self) -> dict[str, Any]:
        """The histogram as values of JSON, without the empty bins at its end."""
        used = np.flatnonzero(self.counts)
        counts = self.counts[: used[-1] + 1] if used.size else self.counts[:0]
        ends = {"min": self.low, "max": self.high}
        return {**ends, "exponent": self.exponent, "first": self.first, "counts": counts.tolist()}

    @staticmethod
    def from_json(data: Any, bins: int) -> Histogram:
        """The histogram that `to_json` gave; raises `ValueError`, `KeyError` or `TypeError` for anything else."""
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
    """The exponent of the narrowest bins of which no more than `bins` reach from `low` to `high`."""
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
    places = (source.first + used) >> min(exponent - source.exponent, 62)
    np.add.at(counts, places - first, source.counts[used])
    return counts

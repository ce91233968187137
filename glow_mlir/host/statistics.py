"""The counts, outcomes and durations of requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

from glow_mlir.support.forks import reset_in_forks

STEPS = 16
"""The number of histogram bins per doubling of a duration: each is 4 percent wide."""

LEAST = 1e-7
"""Shorter durations, in seconds, are counted in the first bin."""

BINS = 36 * STEPS
"""Enough bins for 1.9 hours."""

PERCENTILES = (50.0, 90.0, 99.0, 99.9)


class Histogram:
    """Durations in bins that grow by a constant factor, so that percentiles are accurate to 4 percent."""

    __slots__ = ("bins", "count", "largest", "total")

    def __init__(self) -> None:
        self.bins = [0] * BINS
        self.count = 0
        self.total = 0.0
        self.largest = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration; one thread at a time."""
        bin_index = 0 if seconds <= LEAST else min(BINS - 1, int(math.log2(seconds / LEAST) * STEPS))
        self.bins[bin_index] += 1
        self.count += 1
        self.total += seconds
        if seconds > self.largest:
            self.largest = seconds

    def percentile(self, percent: float) -> float:
        """The percentile of the durations in seconds, at bin resolution; 0 without durations."""
        wanted, found = self.count * percent / 100, 0
        for bin_index, number in enumerate(self.bins):
            found += number
            if number and found >= wanted:
                return min(self.largest, LEAST * 2 ** ((bin_index + 1) / STEPS))
        return 0.0

    def data(self) -> dict[str, float]:
        """Mean, largest, and percentiles, in seconds."""
        named = {f"p{percent:g}": self.percentile(percent) for percent in PERCENTILES}
        return {"mean": self.total / self.count if self.count else 0.0, **named, "largest": self.largest}


class Statistics:
    """Counts and durations of the requests of a network; any thread may read them."""

    OUTCOMES: Sequence[str] = ("succeeded", "failed", "cancelled", "expired", "refused")
    """The outcome of a request: `expired` ones missed their deadline, `refused` ones found the queue full."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_in_forks(self)
        self.counts = dict.fromkeys(self.OUTCOMES, 0)
        self.waited, self.computed, self.whole = Histogram(), Histogram(), Histogram()
        """Seconds in the queue, in calls, and from arrival to answer, of successful requests."""
        self.calls = 0
        """The number of their calls."""
        self.rows = 0
        """The number of samples in these calls; equal to requests if these are not batched."""

    def reset_after_fork(self) -> None:
        """Keep counting in a child of `os.fork`, with a new lock."""
        self._lock = Lock()

    def count(self, outcome: str) -> None:
        """Count a request that was not answered."""
        with self._lock:
            self.counts[outcome] += 1

    def called(self, rows: int, waited: Sequence[float], computed: float) -> None:
        """Count a call: its samples, the waiting times of its requests, and its duration."""
        with self._lock:
            self.calls += 1
            self.rows += rows
            self.counts["succeeded"] += len(waited)
            for seconds in waited:
                self.waited.add(seconds)
                self.computed.add(computed)
                self.whole.add(seconds + computed)

    def data(self) -> dict[str, object]:
        """All statistics as JSON data; durations in seconds."""
        with self._lock:
            return {
                **self.counts,
                "calls": self.calls,
                "samples": self.rows,
                "queue_seconds": self.waited.data(),
                "compute_seconds": self.computed.data(),
                "request_seconds": self.whole.data(),
            }

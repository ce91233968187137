"""How many requests there were, what became of them, and how long they took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

from glow_mlir.support.forks import reset_in_forks

STEPS = 16
"""How many bins of a histogram double a duration: each is 4 percent wide."""

LEAST = 1e-7
"""Shorter durations, in seconds, are of the first bin."""

BINS = 36 * STEPS
"""Up to 1.9 hours."""

PERCENTILES = (50.0, 90.0, 99.0, 99.9)


class Histogram:
    """Durations in bins whose bounds grow by a constant factor, so that percentiles are right within 4 percent."""

    __slots__ = ("bins", "count", "largest", "total")

    def __init__(self) -> None:
        self.bins = [0] * BINS
        self.count = 0
        self.total = 0.0
        self.largest = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration; by one thread at a time."""
        bin_index = 0 if seconds <= LEAST else min(BINS - 1, int(math.log2(seconds / LEAST) * STEPS))
        self.bins[bin_index] += 1
        self.count += 1
        self.total += seconds
        if seconds > self.largest:
            self.largest = seconds

    def percentile(self, percent: float) -> float:
        """Of so many percent of the durations the longest, in seconds, as its bin says it; 0 where there are none."""
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
        """Seconds in the queue, in calls, and from arrival to answer, of requests that succeeded."""
        self.calls = 0
        """How many calls there were for them."""
        self.rows = 0
        """How many samples these had; as many as requests where requests are no batches."""

    def reset_after_fork(self) -> None:
        """Go on counting, in a child of `os.fork`."""
        self._lock = Lock()

    def count(self, outcome: str) -> None:
        """Count a request that was not answered."""
        with self._lock:
            self.counts[outcome] += 1

    def called(self, rows: int, waited: Sequence[float], computed: float) -> None:
        """Count a call for so many samples, the seconds that its requests had waited, and those that it took."""
        with self._lock:
            self.calls += 1
            self.rows += rows
            self.counts["succeeded"] += len(waited)
            for seconds in waited:
                self.waited.add(seconds)
                self.computed.add(computed)
                self.whole.add(seconds + computed)

    def data(self) -> dict[str, object]:
        """All of it, as JSON has it; durations in seconds."""
        with self._lock:
            return {
                **self.counts,
                "calls": self.calls,
                "samples": self.rows,
                "queue_seconds": self.waited.data(),
                "compute_seconds": self.computed.data(),
                "request_seconds": self.whole.data(),
            }

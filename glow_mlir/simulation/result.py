"""The results of a simulation: rates, times and shares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glow_mlir.runtime.queue_trace import Span
from glow_mlir.support.dataclass import dataclass

QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class Times:
    """Mean and percentiles of durations in seconds; each percentile is one of them. All are 0 without durations."""

    mean: float
    p50: float
    p90: float
    p99: float
    p999: float

    @staticmethod
    def of(seconds: np.ndarray) -> Times:
        """The statistics of an array."""
        if not seconds.size:
            return Times(0.0, 0.0, 0.0, 0.0, 0.0)
        found = np.quantile(seconds, QUANTILES, method="inverted_cdf")
        return Times(float(seconds.mean()), *map(float, found))


@dataclass(frozen=True)
class Result:
    """
    The results of a system under a load.

    `requests` counts all but the `warmup` requests; each was answered, refused by a full queue, or expired in it.
    `seconds` are from the first arrival to the last answer. `throughput` is answers per second while requests arrive;
    it excludes the end, when devices run out of work. `latency` is from arrival to answer, `queued` from the queue to a
    replica. `in_system` is the mean number of unanswered requests over all `seconds`.
    """

    requests: int
    answered: int
    refused: int
    expired: int
    seconds: float
    throughput: float
    latency: Times
    queued: Times
    by_kind: Mapping[str, Times]
    """Name of a kind → its latency."""
    calls: int
    batch: float
    """The mean number of rows per call."""
    utilisation: Mapping[str, float]
    """Device → the share of `seconds` for which it was busy, relative to its capacity."""
    in_system: float
    spans: tuple[Span, ...] = ()
    """The operations of devices, in nanoseconds from 0, if traced."""


def throughput(arrived: np.ndarray, done: np.ndarray, warmup: int) -> float:
    """
    Answers per second between the arrival of the first counted request and the last arrival.

    If no answer came in this time, it ends with the last answer. Both arrays are in seconds; `done` is NaN for
    unanswered requests.
    """
    begin, end = arrived[warmup], arrived.max()
    answers = int(np.count_nonzero((done > begin) & (done <= end)))
    if not answers and np.isfinite(done).any():
        end = np.nanmax(done)
        answers = int(np.count_nonzero((done >= begin) & (done <= end)))
    if not answers:
        return 0.0
    return answers / float(end - begin) if end > begin else float("inf")

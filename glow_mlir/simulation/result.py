"""What a simulation found: rates, times and shares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glow_mlir.runtime.queue_trace import Span
from glow_mlir.support.dataclass import dataclass

QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class Times:
    """Mean and percentiles of some seconds; each percentile is one of them. All are 0 where there are none."""

    mean: float
    p50: float
    p90: float
    p99: float
    p999: float

    @staticmethod
    def of(seconds: np.ndarray) -> Times:
        """Those of an array of any length."""
        if not seconds.size:
            return Times(0.0, 0.0, 0.0, 0.0, 0.0)
        found = np.quantile(seconds, QUANTILES, method="inverted_cdf")
        return Times(float(seconds.mean()), *map(float, found))


@dataclass(frozen=True)
class Result:
    """
    What a system did under a load.

    All but `warmup` requests are counted in `requests`, each of which was answered, refused by a full queue, or expired
    in it. `seconds` are those from the first arrival to the last answer. `throughput` is answers a second while
    requests came: what is left behind in the end, when fewer and fewer devices have work, is not in it. `latency` is
    from arrival to answer, `queued` from the queue to a replica. `in_system` is the mean number of requests that have
    come and are not answered, over all `seconds`.
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
    """Name of each kind → its latency."""
    calls: int
    batch: float
    """The mean of the rows of calls."""
    utilisation: Mapping[str, float]
    """Device → the share of `seconds` for which it was busy, of all that it does at once."""
    in_system: float
    spans: tuple[Span, ...] = ()
    """What devices did, in nanoseconds since 0, if it was asked for."""


def throughput(arrived: np.ndarray, done: np.ndarray, warmup: int) -> float:
    """
    Answers a second between the arrival of the first request that counts and the last arrival.

    Where no answer came in this time, it ends with the last answer. Both arrays have seconds, `done` NaN for those
    without an answer.
    """
    begin, end = arrived[warmup], arrived.max()
    answers = int(np.count_nonzero((done > begin) & (done <= end)))
    if not answers and np.isfinite(done).any():
        end = np.nanmax(done)
        answers = int(np.count_nonzero((done >= begin) & (done <= end)))
    if not answers:
        return 0.0
    return answers / float(end - begin) if end > begin else float("inf")

"""Measure the latency of runs, and report it in trtexec's format."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from glow_mlir.support.dataclass import dataclass

PERCENTILES = (90, 95, 99)


@dataclass(frozen=True)
class Budget:
    """
    The number of runs: at least `iterations` times and for at least `duration` seconds, after `warmup` unmeasured
    milliseconds; and at least once, because statistics need a run.
    """

    iterations: int
    duration: float
    warmup: float


@dataclass(frozen=True)
class Measurement:
    """The begin and end of each run, in nanoseconds."""

    begins: np.ndarray
    ends: np.ndarray

    @property
    def key(self) -> str:
        """The key in the report."""
        return "performance"

    @property
    def milliseconds(self) -> np.ndarray:
        """The latency of each run."""
        return (self.ends - self.begins) / 1e6

    @property
    def throughput(self) -> float:
        """Runs per second."""
        return len(self.begins) / self._walltime

    @property
    def _walltime(self) -> float:
        """Seconds from the first begin to the last end."""
        return max(float(self.ends[-1] - self.begins[0]), 1.0) / 1e9

    def statistics(self) -> dict[str, float]:
        """Statistics of the latency by name, in milliseconds."""
        times = self.milliseconds
        named = {"min": times.min(), "max": times.max(), "mean": times.mean(), "median": np.median(times)}
        percentiles = {f"percentile({p}%)": np.percentile(times, p) for p in PERCENTILES}
        return {name: float(value) for name, value in (named | percentiles).items()}

    def show(self) -> None:
        """Print the summary."""
        latency = ", ".join(f"{name} = {value:.6g} ms" for name, value in self.statistics().items())
        print(f"Throughput: {self.throughput:.6g} qps")
        print(f"Latency: {latency}")
        print(f"Total Host Walltime: {self._walltime:.6g} s, {len(self.begins)} iterations")

    def data(self) -> dict[str, object]:
        """The summary as JSON data."""
        return {
            "iterations": len(self.begins),
            "throughput_qps": self.throughput,
            "latency_ms": self.statistics(),
            "walltime_seconds": self._walltime,
        }


def measure(
    run: Callable[[], object],
    budget: Budget,
    after: Callable[[], None] | None = None,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Measurement:
    """
    Run until the budget is used up; call `after` after each measured run, outside the measured time. The clock counts
    nanoseconds.

    There is always at least one unmeasured run, because the first run touches fresh memory.
    """
    begin = clock()
    run()
    while clock() - begin < budget.warmup * 1e6:
        run()
    begins: list[int] = []
    ends: list[int] = []
    while len(begins) < budget.iterations or not ends or ends[-1] - begins[0] < budget.duration * 1e9:
        begins.append(clock())
        run()
        ends.append(clock())
        if after is not None:
            after()
    return Measurement(np.array(begins, np.int64), np.array(ends, np.int64))

"""Profile of a run: the cycle-counter stamps of the machine code as a table by instruction, and as a trace."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from glow_mlir.runtime.artifact import ProfiledStep
from glow_mlir.runtime.machine_code import MachineEntry
from glow_mlir.runtime.trace import CALLER, Event, lead
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.reports.latency import Budget, Measurement, measure
from glow_mlir.tools.reports.tables import Alignment, print_table

if TYPE_CHECKING:
    from glow_mlir.pictures.page import StepTime

MAX_TRACED = 100
"""The number of runs in a trace file; viewers get slow with long traces."""

COLUMNS: dict[str, Alignment] = {
    "instruction": "left",
    "kernel": "left",
    "nodes": "left",
    "median µs": "right",
    "min µs": "right",
    "%": "right",
}
KIND_COLUMNS: dict[str, Alignment] = {
    "instruction": "left",
    "kernel": "left",
    "count": "right",
    "median µs": "right",
    "%": "right",
}


@dataclass(frozen=True)
class Anchor:
    """The end of a run on both clocks."""

    nanoseconds: int
    cycles: int

    @staticmethod
    def after(run: Callable[[], object], stamps: np.ndarray) -> Anchor:
        """Run, and record the end; the run writes its stamps to `stamps`."""
        run()
        return Anchor(time.perf_counter_ns(), int(stamps[-1]))


def profiled_runs(run: Callable[[], object], entry: MachineEntry, budget: Budget) -> Profile:
    """Profile as many runs as the budget allows, of machine code that stamps its instructions."""
    stamps: list[np.ndarray] = []
    spans: list[np.ndarray] = []

    def keep() -> None:
        stamps.append(entry.stamps.copy())
        spans.append(entry.spans.copy())

    anchor = Anchor.after(run, entry.stamps)
    measurement = measure(run, budget, keep)
    return Profile(entry.entry.steps, np.array(stamps), measurement, anchor, np.array(spans))


@dataclass(frozen=True)
class Call:
    """The microseconds of one call, and the parts that sum to it."""

    total: float
    inside: float
    """From the first instruction to the end of the last."""
    around: float
    """The overhead of the quickest call: the call from Python."""
    waiting: float
    """Further overhead of this call: other processes and other disturbances."""


@dataclass(frozen=True)
class Profile:
    """
    The cycle counter of each measured run: before each of the `steps`, and after the last.

    One factor converts cycles to time in all runs: the time by the clock divided by the cycles, from the end of an
    unmeasured `anchor` run to the end of the last run. Both include the overhead of Python.
    """

    steps: Sequence[ProfiledStep]
    stamps: np.ndarray
    measurement: Measurement
    anchor: Anchor
    spans: np.ndarray
    """
    By run, step and thread: the counter at the begin of the thread's first task and the end of its last; 0 if it had
    none.
    """
    key: str = "profile"

    @cached_property
    def microseconds_per_cycle(self) -> float:
        """The length of a cycle in microseconds."""
        elapsed = float(self.measurement.ends[-1] - self.anchor.nanoseconds) / 1e3
        return elapsed / max(float(self.stamps[-1, -1] - self.anchor.cycles), 1.0)

    @cached_property
    def times(self) -> np.ndarray:
        """Microseconds by run and step."""
        return np.diff(self.stamps, axis=1) * self.microseconds_per_cycle

    @cached_property
    def medians(self) -> np.ndarray:
        """The median of each step, in microseconds."""
        return np.median(self.times, axis=0)

    def step_times(self) -> list[StepTime]:
        """The median and the minimum time of each step, for a page."""
        from glow_mlir.pictures.page import StepTime

        measured = zip(self.steps, self.medians, self.times.min(axis=0), strict=True)
        return [StepTime(step.kind, float(median), float(least)) for step, median, least in measured]

    def shares(self) -> np.ndarray:
        """The share of each step in the sum of medians, in percent."""
        return 100 * self.medians / max(float(self.medians.sum()), 1e-9)

    def by_kind(self) -> list[tuple[str, str, int, float, float]]:
        """Instruction, kernel, count, microseconds and percent, the longest first."""
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, step in enumerate(self.steps):
            groups[step.kind, step.kernel].append(index)
        shares = self.shares()
        rows = [
            (*name, len(members), float(self.medians[members].sum()), float(shares[members].sum()))
            for name, members in groups.items()
        ]
        return sorted(rows, key=lambda row: -row[3])

    def show(self) -> None:
        """Print the tables by instruction and by kind, and the share of the latency that they explain."""
        runs = len(self.stamps)
        measured = zip(self.steps, self.medians, self.times.min(axis=0), self.shares(), strict=True)
        rows = [
            [step.kind, step.kernel, step.location, f"{median:.2f}", f"{least:.2f}", f"{share:.1f}"]
            for step, median, least, share in measured
        ]
        print_table(f"profile, median of {runs} runs", COLUMNS, rows)
        kinds = [
            [kind, kernel, str(n), f"{time:.2f}", f"{share:.1f}"] for kind, kernel, n, time, share in self.by_kind()
        ]
        print_table("profile by kind", KIND_COLUMNS, kinds)
        call = self.median_call()
        parts = f"{call.inside:.2f} in instructions + {call.around:.2f} to call them from Python"
        waiting = f"{call.waiting:.2f} waiting, beyond the quickest call"
        print(f"the median call takes {call.total:.2f} µs = {parts} + {waiting}")

    def data(self) -> dict[str, object]:
        """The profile as JSON data."""
        measured = zip(self.steps, self.medians, self.times.min(axis=0), self.shares(), strict=True)
        names = ("instruction", "kernel", "count", "median_us", "percent")
        return {
            "runs": len(self.stamps),
            "instructions": [
                {
                    "instruction": step.kind,
                    "kernel": step.kernel,
                    "nodes": step.location,
                    "median_us": float(median),
                    "min_us": float(least),
                    "percent": float(share),
                }
                for step, median, least, share in measured
            ],
            "kinds": [dict(zip(names, row, strict=True)) for row in self.by_kind()],
            "median_call_us": asdict(self.median_call()),
        }

    def median_call(self) -> Call:
        """The call with the median latency; for an even number of calls, the quicker of the two in the middle."""
        totals = self.measurement.milliseconds * 1e3
        inside = self.times.sum(axis=1)
        outside = totals - inside
        run = int(np.argsort(totals, kind="stable")[(len(totals) - 1) // 2])
        least = float(outside.min())
        return Call(float(totals[run]), float(inside[run]), least, float(outside[run]) - least)

    @property
    def tracks(self) -> list[str]:
        """The names of the threads in a trace, the caller's first."""
        return [CALLER, *(f"worker {thread}" for thread in range(1, self.spans.shape[2]))]

    def events(self) -> list[Event]:
        """The last runs as events of a trace, on the levels `request` and `operator`."""
        count = len(self.stamps)
        first = max(0, count - MAX_TRACED)
        origin = self.measurement.begins[first]
        events: list[Event] = []
        for run in range(first, count):
            begin = float(self.measurement.begins[run] - origin) / 1e3
            length = float(self.measurement.ends[run] - self.measurement.begins[run]) / 1e3
            events.append(Event("run", "request", begin, length, {"run": run}))
            events += self._operators(run, begin, length)
            events += self._parts(run, begin, length)
        return events

    def _operators(self, run: int, begin: float, length: float) -> list[Event]:
        """
        The instructions of one run that took `length` in all.

        The two clocks have no common zero: half of Python's overhead is placed before the instructions, half after
        them.
        """
        offsets = self._offsets(run, self.stamps[run])
        start = begin + self._lead(run, length)
        return [
            Event(
                step.location or step.kind,
                "operator",
                start + float(offsets[index]),
                float(offsets[index + 1] - offsets[index]),
                {"instruction": step.kind, "kernel": step.kernel},
            )
            for index, step in enumerate(self.steps)
        ]

    def _parts(self, run: int, begin: float, length: float) -> list[Event]:
        """The work of the other threads in one run: for each instruction, from the thread's first task to its last."""
        start = begin + self._lead(run, length)
        events: list[Event] = []
        for number, step in enumerate(self.steps):
            # The first thread is the caller's.
            for thread, span in enumerate(self.spans[run, number, 1:], 1):
                if span[0]:
                    first, last = map(float, self._offsets(run, span))
                    details: dict[str, object] = {"instruction": step.kind, "kernel": step.kernel, "run": run}
                    name, track = step.location or step.kind, self.tracks[thread]
                    events.append(Event(name, "part", start + first, last - first, details, track))
        return events

    def _offsets(self, run: int, cycles: np.ndarray) -> np.ndarray:
        """Microseconds from the first instruction of a run to each of these counter values."""
        return (cycles - self.stamps[run, 0]) * self.microseconds_per_cycle

    def _lead(self, run: int, length: float) -> float:
        """Microseconds before the first instruction of a run that took `length` in all."""
        return lead(length, float(self._offsets(run, self.stamps[run, -1:])[0]))

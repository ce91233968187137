"""Where the time of a run goes: cycle counter stamps of the machine code as a table by instruction, and as a trace."""

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
"""Runs that a trace file holds; the viewers get slow with long ones."""

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
        """The end of a run that leaves its stamps in `stamps`."""
        run()
        return Anchor(time.perf_counter_ns(), int(stamps[-1]))


def profiled_runs(run: Callable[[], object], entry: MachineEntry, budget: Budget) -> Profile:
    """The profile of as many runs as a budget says, of machine code that stamps its instructions."""
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
    """From the first instruction to behind the last one."""
    around: float
    """What the quickest call takes besides: the call from Python."""
    waiting: float
    """What this call takes besides that: other processes, and whatever else comes in between."""


@dataclass(frozen=True)
class Profile:
    """
    The cycle counter of each measured run: before each of the `steps` and behind the last one.

    Cycles become time by one factor for all runs: from the end of an `anchor` run, which came before those measured, to
    the end of the last one, as the clock and as the counter have it. What Python does is in both.
    """

    steps: Sequence[ProfiledStep]
    stamps: np.ndarray
    measurement: Measurement
    anchor: Anchor
    spans: np.ndarray
    """By run, step and thread, the counter when the thread began its first part and ended its last; 0 for no part."""
    key: str = "profile"

    @cached_property
    def microseconds_per_cycle(self) -> float:
        """The length of a cycle."""
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
        """The median and the least time of each step, for a page."""
        from glow_mlir.pictures.page import StepTime

        measured = zip(self.steps, self.medians, self.times.min(axis=0), strict=True)
        return [StepTime(step.kind, float(median), float(least)) for step, median, least in measured]

    def shares(self) -> np.ndarray:
        """The share that each step has in the sum of medians, in percent."""
        return 100 * self.medians / max(float(self.medians.sum()), 1e-9)

    def by_kind(self) -> list[tuple[str, str, int, float, float]]:
        """Instruction, kernel, how many, microseconds and percent, the longest first."""
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
        """Print the table by instruction, that by kind, and how much of the latency they explain."""
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
        waiting = f"{call.waiting:.2f} waiting, which the quickest call does without"
        print(f"the median call takes {call.total:.2f} µs = {parts} + {waiting}")

    def data(self) -> dict[str, object]:
        """The profile as JSON has it."""
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
        """The call with the median latency; of an even number of calls, the quicker one of both in the middle."""
        totals = self.measurement.milliseconds * 1e3
        inside = self.times.sum(axis=1)
        outside = totals - inside
        run = int(np.argsort(totals, kind="stable")[(len(totals) - 1) // 2])
        least = float(outside.min())
        return Call(float(totals[run]), float(inside[run]), least, float(outside[run]) - least)

    @property
    def tracks(self) -> list[str]:
        """The threads of a trace by name, the caller's first."""
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

        The two clocks have no common zero: what Python adds is taken to come half before and half behind.
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
        """What the other threads do in one run: from the first to the last part of an instruction that each has."""
        start = begin + self._lead(run, length)
        events: list[Event] = []
        for number, step in enumerate(self.steps):
            # The first thread is that of the caller.
            for thread, span in enumerate(self.spans[run, number, 1:], 1):
                if span[0]:
                    first, last = map(float, self._offsets(run, span))
                    details: dict[str, object] = {"instruction": step.kind, "kernel": step.kernel, "run": run}
                    name, track = step.location or step.kind, self.tracks[thread]
                    events.append(Event(name, "part", start + first, last - first, details, track))
        return events

    def _offsets(self, run: int, cycles: np.ndarray) -> np.ndarray:
        """Microseconds from the first instruction of a run to each of those values of the counter."""
        return (cycles - self.stamps[run, 0]) * self.microseconds_per_cycle

    def _lead(self, run: int, length: float) -> float:
        """Microseconds in front of the first instruction of a run that took `length` in all."""
        return lead(length, float(self._offsets(run, self.stamps[run, -1:])[0]))

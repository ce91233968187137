"""The times of a session's calls; `end_profiling` writes them as a trace in Chrome's JSON format, like onnxruntime."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar

import numpy as np

from glow_mlir.runtime.artifact import ProfiledStep
from glow_mlir.runtime.machine_code import MachineEntry
from glow_mlir.runtime.trace import lead
from glow_mlir.support.cancellation import held
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.files import replaced

Result = TypeVar("Result")

MAX_EVENTS = 1_000_000
"""The maximum number of events; later calls are not recorded."""


_NAMING = Lock()
"""Held from choosing a file name until the file exists."""


@dataclass(frozen=True)
class _Call:
    """A call: begin and end in ns, and the cycle counter before each step and after the last."""

    begin: int
    end: int
    steps: Sequence[ProfiledStep]
    stamps: np.ndarray


class CallProfile:
    """The times of consecutive calls, relative to `start` on the clock of `time.monotonic_ns`."""

    def __init__(self, prefix: str, start: int) -> None:
        self.start = start
        self._prefix = prefix
        self._loaded = time.monotonic_ns()
        self._calls: list[_Call] = []
        self._events = 0
        self._turn = Lock()

    def timed(self, call: Callable[[], Result], entry: Callable[[], MachineEntry]) -> Result:
        """Return the result of `call`, and record its times from the entry."""
        with held(self._turn):
            begin = time.monotonic_ns()
            result = call()
            end = time.monotonic_ns()
            used = entry()
            self._events += len(used.entry.steps) + 1
            if self._events <= MAX_EVENTS:
                self._calls.append(_Call(begin, end, used.entry.steps, used.stamps.copy()))
            return result

    def write(self) -> str:
        """Write the trace to a new file, and return its name; raises `OptionError` if that fails."""
        lines = ",\n".join(json.dumps(event) for event in self._trace())  # One event per line, for line-based readers.
        trace = f"[\n{lines}\n]\n".encode()
        with _NAMING:
            moment = time.time()
            while os.path.lexists(path := _named(self._prefix, moment)):
                moment += 0.001
            with replaced(Path(path)) as file:
                file.write(trace)
        return path

    def _trace(self) -> list[dict[str, object]]:
        """The events, in order."""
        events = [_event("session_initialization", "Session", 0.0, (self._loaded - self.start) / 1e3)]
        scale = self._microseconds_per_cycle()
        for call in self._calls:
            begin = (call.begin - self.start) / 1e3
            length = (call.end - call.begin) / 1e3
            events.append(_event("model_run", "Session", begin, length))
            offsets = (call.stamps - call.stamps[0]) * scale
            first = begin + lead(length, float(offsets[-1]))
            for number, step in enumerate(call.steps):
                duration = float(offsets[number + 1] - offsets[number])
                details = {
                    "op_name": step.kind,
                    "provider": "GlowExecutionProvider",
                    "kernel": step.kernel,
                    "node_index": str(number),
                    "nodes": step.location,
                }
                name = f"{step.location or step.kind}_kernel_time"
                events.append(_event(name, "Node", first + float(offsets[number]), duration, details))
        return events

    def _microseconds_per_cycle(self) -> float:
        """
        The length of a counter cycle, measured between the ends of two calls, or within one, including Python's
        overhead.
        """
        if not self._calls:
            return 0.0
        one, other = self._calls[0], self._calls[-1]
        if one is other:
            return (one.end - one.begin) / 1e3 / max(float(one.stamps[-1] - one.stamps[0]), 1.0)
        return (other.end - one.end) / 1e3 / max(float(other.stamps[-1] - one.stamps[-1]), 1.0)


def _named(prefix: str, moment: float) -> str:
    """A file name with a timestamp in milliseconds."""
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(moment))
    return f"{prefix}_{stamp}_{int(moment * 1000) % 1000:03}.json"


def _event(
    name: str, category: str, begin: float, duration: float, details: dict[str, str] | None = None
) -> dict[str, object]:
    """An event of a trace; times are in microseconds."""
    number = os.getpid()
    return {
        "cat": category,
        "pid": number,
        "tid": number,
        "dur": round(duration, 3),
        "ts": round(begin, 3),
        "ph": "X",
        "name": name,
        "args": details or {},
    }

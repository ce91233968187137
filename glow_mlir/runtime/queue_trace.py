"""Traces of the operations in device queues."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field
from threading import Lock

from glow_mlir.runtime.trace import Event
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Span:
    """An operation of a queue: its begin and end, in nanoseconds of `time.perf_counter_ns`."""

    queue: str
    what: str
    begin: int
    end: int


@dataclass
class QueueTrace:
    """The operations of queues, in order of completion."""

    spans: list[Span] = field(default_factory=list[Span])
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def add(self, span: Span) -> None:
        """Record an operation; any thread may call this."""
        with self._lock:
            self.spans.append(span)

    @property
    def queues(self) -> list[str]:
        """The names of the queues."""
        return sorted({span.queue for span in self.spans})

    def times(self) -> dict[tuple[str, str], list[float]]:
        """Queue and operation → the duration of each run in microseconds; sorted by both names."""
        found: dict[tuple[str, str], list[float]] = {}
        for span in sorted(self.spans, key=lambda span: (span.queue, span.what)):
            found.setdefault((span.queue, span.what), []).append((span.end - span.begin) / 1e3)
        return found

    def events(self) -> list[Event]:
        """The events for `chrome_trace`: a track for each queue."""
        origin = min((span.begin for span in self.spans), default=0)
        return [
            Event(span.what, "queue", (span.begin - origin) / 1e3, (span.end - span.begin) / 1e3, track=span.queue)
            for span in self.spans
        ]


_ACTIVE: list[QueueTrace] = []
"""The active traces; usually none."""


@contextmanager
def tracing(trace: QueueTrace) -> Generator[None]:
    """Record the operations of all queues of the process inside the `with` statement."""
    _ACTIVE.append(trace)
    try:
        yield
    finally:
        _ACTIVE.remove(trace)


def is_traced() -> bool:
    """Whether any trace is active."""
    return bool(_ACTIVE)


@contextmanager
def traced(queue: str, what: str) -> Generator[None]:
    """Record the body of the `with` statement as an operation of a queue."""
    if not _ACTIVE:
        yield
        return
    begin = time.perf_counter_ns()
    try:
        yield
    finally:
        note(queue, what, begin, time.perf_counter_ns())


def note(queue: str, what: str, begin: int, end: int) -> None:
    """Record an operation of a queue with its begin and end in nanoseconds."""
    for trace in list(_ACTIVE):
        trace.add(Span(queue, what, begin, end))

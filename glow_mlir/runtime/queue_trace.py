"""What the queues of devices do when, while somebody wants to know."""

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
    """What a queue did: when it began and ended, in nanoseconds of `time.perf_counter_ns`."""

    queue: str
    what: str
    begin: int
    end: int


@dataclass
class QueueTrace:
    """What queues did, in the order in which it ended."""

    spans: list[Span] = field(default_factory=list[Span])
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def add(self, span: Span) -> None:
        """Keep what a queue did; any thread may."""
        with self._lock:
            self.spans.append(span)

    @property
    def queues(self) -> list[str]:
        """The names of the queues."""
        return sorted({span.queue for span in self.spans})

    def times(self) -> dict[tuple[str, str], list[float]]:
        """Queue and what it did → how long that took each time, in microseconds; sorted by both names."""
        found: dict[tuple[str, str], list[float]] = {}
        for span in sorted(self.spans, key=lambda span: (span.queue, span.what)):
            found.setdefault((span.queue, span.what), []).append((span.end - span.begin) / 1e3)
        return found

    def events(self) -> list[Event]:
        """What `chrome_trace` takes: a track for each queue."""
        origin = min((span.begin for span in self.spans), default=0)
        return [
            Event(span.what, "queue", (span.begin - origin) / 1e3, (span.end - span.begin) / 1e3, track=span.queue)
            for span in self.spans
        ]


_ACTIVE: list[QueueTrace] = []
"""The traces that are kept at present; mostly none."""


@contextmanager
def tracing(trace: QueueTrace) -> Generator[None]:
    """Keep what all queues of the process do inside the `with` statement."""
    _ACTIVE.append(trace)
    try:
        yield
    finally:
        _ACTIVE.remove(trace)


def is_traced() -> bool:
    """Whether somebody keeps what queues do."""
    return bool(_ACTIVE)


@contextmanager
def traced(queue: str, what: str) -> Generator[None]:
    """Tell the traces of something that a queue does inside the `with` statement."""
    if not _ACTIVE:
        yield
        return
    begin = time.perf_counter_ns()
    try:
        yield
    finally:
        note(queue, what, begin, time.perf_counter_ns())


def note(queue: str, what: str, begin: int, end: int) -> None:
    """Tell the traces of something that a queue has done, from one time to another in nanoseconds."""
    for trace in list(_ACTIVE):
        trace.add(Span(queue, what, begin, end))

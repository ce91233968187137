"""Traces in Chrome's JSON format, which chrome://tracing and Perfetto show as nested bars."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import field

from glow_mlir.support.dataclass import dataclass

CALLER = "caller"
"""The track of the calling thread."""


@dataclass(frozen=True)
class Event:
    """
    A traced event: its name, level, begin and duration in microseconds, and the track (thread) on which it is shown.
    """

    name: str
    level: str
    begin: float
    duration: float
    details: dict[str, object] = field(default_factory=dict[str, object])
    track: str = CALLER


def lead(length: float, inside: float) -> float:
    """
    Microseconds before the first instruction of a call that took `length` in all, and `inside` in instructions.

    The clock and the cycle counter have no common zero: half of Python's overhead is placed before the instructions.
    """
    return max(0.0, length - inside) / 2


def chrome_trace(events: Iterable[Event], process: str, tracks: Sequence[str] = (CALLER,)) -> str:
    """The events as a trace file, with the given tracks from the top; nested events are shown below their parents."""
    number = os.getpid()
    positions = {name: at for at, name in enumerate(tracks, 1)}
    entries = [_named("process_name", number, 1, name=process)]
    for name, at in positions.items():
        entries.append(_named("thread_name", number, at, name=name))
        entries.append(_named("thread_sort_index", number, at, sort_index=at))
    for event in events:
        entries.append(
            {
                "ph": "X",
                "name": event.name,
                "cat": event.level,
                "ts": round(event.begin, 3),
                "dur": round(event.duration, 3),
                "pid": number,
                "tid": positions[event.track],
                "args": event.details,
            }
        )
    return json.dumps({"traceEvents": entries, "displayTimeUnit": "ns"}, indent=1) + "\n"


def _named(what: str, process: int, thread: int, **details: object) -> dict[str, object]:
    """A metadata entry for a process or thread."""
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": details}

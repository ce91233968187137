"""Traces in Chrome's JSON format, which chrome://tracing and Perfetto show as nested bars."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import field

from glow_mlir.support.dataclass import dataclass

CALLER = "caller"
"""The track of the thread that calls the model."""


@dataclass(frozen=True)
class Event:
    """
    Something that took time: its name, its level, when it began and how long it took in microseconds, and the track on
    which it is shown, which is a thread.
    """

    name: str
    level: str
    begin: float
    duration: float
    details: dict[str, object] = field(default_factory=dict[str, object])
    track: str = CALLER


def lead(length: float, inside: float) -> float:
    """
    Microseconds in front of the first instruction of a call that took `length` in all, and `inside` instructions.

    The clock and the counter of cycles have no common zero: half of what Python adds is taken to come before.
    """
    return max(0.0, length - inside) / 2


def chrome_trace(events: Iterable[Event], process: str, tracks: Sequence[str] = (CALLER,)) -> str:
    """The events as the text of a trace file, with those tracks from above; events inside others are shown below."""
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
    """An entry that says something of a process or thread."""
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": details}

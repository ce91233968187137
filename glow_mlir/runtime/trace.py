"""Traces in Chrome's JSON format, which chrome://tracing and Perfetto show as nested bars."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Event:
    """Something that took time: its name, its level, when it began and how long it took in microseconds."""

    name: str
    level: str
    begin: float
    duration: float
    details: dict[str, object] = field(default_factory=dict[str, object])


def chrome_trace(events: Iterable[Event], process: str) -> str:
    """The events of one thread as the text of a trace file; events that lie inside others are shown below them."""
    number = os.getpid()
    entries: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": number, "tid": 1, "args": {"name": process}}
    ]
    for event in events:
        entries.append(
            {
                "ph": "X",
                "name": event.name,
                "cat": event.level,
                "ts": round(event.begin, 3),
                "dur": round(event.duration, 3),
                "pid": number,
                "tid": 1,
                "args": event.details,
            }
        )
    return json.dumps({"traceEvents": entries, "displayTimeUnit": "ns"}, indent=1) + "\n"

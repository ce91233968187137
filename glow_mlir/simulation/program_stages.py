"""Replicas from compiled models: the queue operations of a host program as stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from glow_mlir.errors import OptionError
from glow_mlir.runtime.host_programs import Call, HostProgram, RecordEvent, Transfer, WaitEvent
from glow_mlir.runtime.queue_trace import QueueTrace
from glow_mlir.simulation.service import Fixed, Law, Measured
from glow_mlir.simulation.system import Hop, Replica, Stage

TRANSFER = "transfer"
"""The name of copies between memories in queues."""


def from_host_program(
    program: HostProgram,
    seconds: Mapping[str, Law | Sequence[float] | float],
    hop_seconds: float | Callable[[int], float] = 0.0,
    wake_seconds: float = 0.0,
) -> Replica:
    """
    The calls and transfers of a host program as stages of their queues, in order.

    `seconds` has those of each entry: a law, measured values, or a number. A transfer takes `hop_seconds`, possibly
    depending on its bytes. A queue that waits for an event of another queue resumes after `wake_seconds`. Raises
    `OptionError` for an entry without seconds.
    """
    stages: list[Stage] = []
    last: dict[str, int] = {}
    events: dict[int, int | None] = {}
    awaited: dict[str, list[Hop]] = {}

    def put(queue: str, name: str, law: Law) -> None:
        before = [Hop(last[queue])] if queue in last else []
        stages.append(Stage(name, queue, law, (*before, *awaited.pop(queue, ()))))
        last[queue] = len(stages) - 1

    for step in program.steps:
        match step:
            case Call(queue, entry):
                put(queue, entry, _law(entry, seconds))
            case Transfer(queue, nbytes=nbytes):
                put(queue, TRANSFER, Fixed(hop_seconds(nbytes) if callable(hop_seconds) else hop_seconds))
            case RecordEvent(queue, event):
                events[event] = last.get(queue)
            case WaitEvent(queue, event):
                if (stage := events[event]) is not None:
                    awaited.setdefault(queue, []).append(Hop(stage, wake_seconds))
            case _:  # Allocation takes no time.
                pass
    return tuple(stages)


def _law(entry: str, seconds: Mapping[str, Law | Sequence[float] | float]) -> Law:
    if entry not in seconds:
        raise OptionError(f"entry '{entry}' has no seconds", hint=f"there are some for {', '.join(seconds) or 'none'}")
    match seconds[entry]:
        case int() | float() as number:
            return Fixed(float(number))
        case Sequence() as samples:
            return Measured(tuple(map(float, samples)))
        case law:
            return law


def measured_seconds(trace: QueueTrace) -> dict[str, Law]:
    """Queue operation → its measured durations, for `from_host_program`."""
    found: dict[str, list[float]] = {}
    for (_, what), times in trace.times().items():
        found.setdefault(what, []).extend(time / 1e6 for time in times)
    return {what: Measured(tuple(times)) for what, times in found.items()}

"""Adapt host programs to inputs and outputs that are already in device memory, to avoid transfers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from glow_mlir.runtime.host_programs import Allocate, Call, Free, HostProgram, RecordEvent, Step, Transfer, WaitEvent


def with_placed_bindings(program: HostProgram, homes: Mapping[int, str]) -> HostProgram:
    """
    Adapt a host program to bindings, its first buffers, that are in device memory; `homes` has the names of the
    devices.

    An upload to that device, or a download from it, is replaced by the buffer itself. Other devices use a copy on the
    host, made by the device's queue.
    """
    same = _same(program, homes)
    steps = [_renamed(step, same) for step in program.steps if not _is_of(step, same)]
    numbers = _Numbers(program)
    before: list[Step] = []
    for number, home in homes.items():
        binding = program.bindings[number]
        foreign = [queue for queue in _queues(steps, number) if queue != home]
        if not foreign:
            steps = [step for step in steps if not _is_download(step, number)]
            continue
        copy = numbers.buffer()
        before.append(Allocate(copy, "", binding.nbytes))
        if binding.role == "input":
            event = numbers.event()
            steps = [_elsewhere(step, number, copy, home) for step in steps]
            before += [Transfer(home, copy, number, binding.nbytes), RecordEvent(home, event)]
            before += [WaitEvent(queue, event) for queue in foreign]
        elif number in same.values():
            steps = [_elsewhere(step, number, copy, home) for step in steps]
        else:
            steps = [_renamed(step, {number: copy}) for step in steps]
            for queue in foreign:
                event = numbers.event()
                steps += [RecordEvent(queue, event), WaitEvent(home, event)]
            steps.append(Transfer(home, number, copy, binding.nbytes))
    return replace(program, steps=(*before, *steps))


def _same(program: HostProgram, homes: Mapping[int, str]) -> dict[int, int]:
    """Buffer of a device → the binding's buffer that it would be a copy of, or be copied to, in the same memory."""
    same: dict[int, int] = {}
    inputs = {number for number in homes if program.bindings[number].role == "input"}
    for step in program.steps:
        if not isinstance(step, Transfer):
            continue
        if step.source in inputs and homes[step.source] == step.queue:
            same[step.target] = step.source
        elif homes.get(step.target) == step.queue and step.source not in same:
            same[step.source] = step.target
    return same


def _is_of(step: Step, same: Mapping[int, int]) -> bool:
    """Whether a step allocates, fills or frees a buffer that is replaced by a binding's buffer."""
    if isinstance(step, Transfer):
        return same.get(step.target) == step.source
    return isinstance(step, Allocate | Free) and step.buffer in same


def _is_download(step: Step, number: int) -> bool:
    """Whether a step copies an output from the device that has written it to its target."""
    return isinstance(step, Transfer) and step.source == step.target == number


def _elsewhere(step: Step, number: int, copy: int, home: str) -> Step:
    """A step that uses a binding's copy on the host, unless it runs on the device that holds the binding."""
    if _is_download(step, number):
        assert isinstance(step, Transfer)
        return replace(step, target=copy)
    return step if _queue(step) == home else _renamed(step, {number: copy})


def _queues(steps: Sequence[Step], number: int) -> list[str]:
    """The queues whose steps read or write a buffer."""
    return list(dict.fromkeys(_queue(step) for step in steps if number in _buffers(step)))


def _buffers(step: Step) -> tuple[int, ...]:
    """The buffers that a step reads or writes."""
    match step:
        case Call():
            return step.buffers
        case Transfer():
            return (step.target, step.source)
        case _:
            return ()


def _queue(step: Step) -> str:
    return "" if isinstance(step, Allocate | Free) else step.queue


def _renamed(step: Step, names: Mapping[int, int]) -> Step:
    """A step with other buffers."""
    match step:
        case Call():
            return replace(step, buffers=tuple(names.get(number, number) for number in step.buffers))
        case Transfer():
            source, target = (names.get(number, number) for number in (step.source, step.target))
            return replace(step, source=source, target=target)
        case _:
            return step


class _Numbers:
    """Unused numbers of buffers and events of a program."""

    def __init__(self, program: HostProgram) -> None:
        self._buffers = _next(step.buffer for step in program.steps if isinstance(step, Allocate))
        self._buffers = max(self._buffers, len(program.bindings))
        self._events = _next(step.event for step in program.steps if isinstance(step, RecordEvent))

    def buffer(self) -> int:
        """The number of a new buffer."""
        self._buffers += 1
        return self._buffers - 1

    def event(self) -> int:
        """The number of a new event."""
        self._events += 1
        return self._events - 1


def _next(numbers: Iterable[int]) -> int:
    return max(numbers, default=-1) + 1

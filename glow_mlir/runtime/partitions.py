"""Functions that are calls of partitions on devices: what is known of them, and what runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np

from glow_mlir.errors import CancelledError
from glow_mlir.runtime.devices import Buffer, Device, Event, QueueEntry
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.host_device import HostBuffer, HostDevice, HostEntry
from glow_mlir.runtime.host_programs import (
    Allocate,
    Call,
    Free,
    HostProgram,
    RecordEvent,
    Step,
    Transfer,
    WaitEvent,
)
from glow_mlir.runtime.state import State
from glow_mlir.support.cancellation import Cancellation, cancelled_by, current_cancellation, held
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class DevicePart:
    """What the backend of a device made of the partitions on it; an inference computes in up to `threads`."""

    device: str
    backend: str
    threads: int
    artifact: Any

    @property
    def number(self) -> int:
        """That of the device among those of the backend."""
        return int(self.device.rpartition(":")[2])


@dataclass(frozen=True)
class PartitionedArtifact:
    """What is compiled for each device, and the host programs that call it."""

    parts: tuple[DevicePart, ...]
    programs: tuple[HostProgram, ...]


class JoinedState(State):
    """The state on several devices as one: each array is where its device has it."""

    def __init__(self, states: Iterable[State]) -> None:
        self._owners: dict[str, State] = {}
        super().__init__(())
        self._owners.update((name, state) for state in states for name in state.names)
        self._initial = {name: state.initial(name) for name, state in self._owners.items()}
        self.changes = dict.fromkeys(self._owners, 0)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, by name."""
        return {name: state.arrays[name] for name, state in self._owners.items()}

    @arrays.setter
    def arrays(self, arrays: dict[str, np.ndarray]) -> None:
        assert not arrays

    def place(self, places: Mapping[str, np.ndarray]) -> None:
        for name, place in places.items():
            self._known(name)
            self._owners[name].place({name: place})

    def change(self, names: Iterable[str]) -> None:
        chosen = tuple(names)
        super().change(chosen)
        for name in chosen:
            self._owners[name].change((name,))


class PartitionedEntry(EntryPoint):
    """An entry that is a host program: a call puts its steps into the queues of the devices, and waits for the end."""

    def __init__(
        self,
        program: HostProgram,
        entries: Mapping[tuple[str, str], QueueEntry],
        devices: Mapping[str, Device],
        state: State,
    ) -> None:
        super().__init__(program.name, program.bindings, state)
        self._program = program
        self._entries = entries
        self._devices = devices

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        # The state stays where the devices have it: nobody looks at its arrays.
        with held(self._state.turn) if self._has_state else nullcontext():
            return self._call(inputs, {})

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs: dict[str, np.ndarray] = {}
        run = _Run(self._entries, self._devices)
        for number, binding in enumerate(self.bindings):
            if binding.role == "input":
                run.buffers[number] = HostBuffer.of(inputs[binding.name])
            elif binding.role == "output":
                buffer = HostBuffer(binding.nbytes)
                outputs[binding.name] = buffer.view(binding.shape, binding.numpy_dtype)
                run.buffers[number] = buffer
        call = current_cancellation() or Cancellation()
        with cancelled_by(call):  # Which the threads of queues look at.
            try:
                self._run(run)
            except KeyboardInterrupt:
                call.cancel(CancelledError("the call was interrupted"))
                with suppress(CancelledError):
                    run.finish()
                raise
        return outputs

    def _run(self, run: _Run) -> None:
        """Take all steps, and wait for the end of what they put into queues."""
        try:
            for step in self._program.steps:
                run.take(step)
        finally:
            run.finish()


class _Run:
    """One call of a host program: its buffers, and what has been put into queues so far."""

    def __init__(self, entries: Mapping[tuple[str, str], QueueEntry], devices: Mapping[str, Device]) -> None:
        self.buffers: dict[int, Buffer] = {}
        self._entries = entries
        self._devices = devices
        self._homes: dict[int, Device] = {}
        """Buffer → the device in whose memory it was allocated."""
        self._put: list[Event] = []
        """What has been put into queues, in order."""
        self._last: dict[str, Event] = {}
        """Queue → what was put into it last."""
        self._events: dict[int, Event | None] = {}
        self._awaited: dict[str, list[Event]] = {}
        """Queue → what has to happen before what comes next in it."""

    def take(self, step: Step) -> None:
        """Do what a step says."""
        match step:
            case Allocate():
                self._allocate(step)
            case Free():
                self._free(step.buffer)
            case Call():
                buffers = [self.buffers[number] for number in step.buffers]
                entry = self._entries[step.queue, step.entry]
                self._keep(step.queue, entry.enqueue(buffers, self._after(step.queue)))
            case Transfer():
                self._transfer(step)
            case RecordEvent():
                self._events[step.event] = self._last.get(step.queue)
            case WaitEvent():
                if (event := self._events[step.event]) is not None:
                    self._awaited.setdefault(step.queue, []).append(event)

    def _allocate(self, step: Allocate) -> None:
        if not step.device:
            self.buffers[step.buffer] = HostBuffer(step.nbytes)
            return
        device = self._devices[step.device]
        self.buffers[step.buffer] = device.allocate(step.nbytes)
        self._homes[step.buffer] = device

    def _free(self, number: int) -> None:
        buffer, home = self.buffers.pop(number), self._homes.pop(number, None)
        if home is not None:
            home.free(buffer)

    def _after(self, queue: str) -> list[Event]:
        """What comes next in a queue is behind this: what came before in it, for where that fails nothing follows."""
        last = self._last.get(queue)
        return [*([] if last is None else [last]), *self._awaited.pop(queue, ())]

    def _keep(self, queue: str, event: Event) -> None:
        self._last[queue] = event
        self._put.append(event)

    def _transfer(self, step: Transfer) -> None:
        device, after = self._devices[step.queue], self._after(step.queue)
        target, source = self.buffers[step.target], self.buffers[step.source]
        if isinstance(source, HostBuffer):  # Such as the target may be, of a device that is said to have its own.
            self._keep(step.queue, device.upload(target, source.array[: step.nbytes], after))
        else:
            assert isinstance(target, HostBuffer)
            self._keep(step.queue, device.download(source, target.array[: step.nbytes], after))

    def finish(self) -> None:
        """
        Wait for all that is in queues, also where something failed, and give back what is left.

        Raises what failed first, in the order in which things were put into queues.
        """
        errors: list[Exception] = []
        try:
            for event in reversed(self._put):  # When the last is done, most are, and nobody wakes up in between.
                try:
                    event.wait()
                except Exception as error:
                    errors.append(error)
        finally:
            for number in list(self._homes):
                self._free(number)
        if errors:
            raise errors[-1]


class PartitionedExecutable(Executable):
    """Partitions on their devices, and the functions that call them."""

    def __init__(self, artifact: PartitionedArtifact, loaded: Mapping[str, Executable]) -> None:
        state = JoinedState(executable.state for executable in loaded.values())
        super().__init__([program.name for program in artifact.programs], state)
        self._programs = {program.name: program for program in artifact.programs}
        self._loaded = loaded
        self.devices = {name: executable.device or HostDevice(name) for name, executable in loaded.items()}
        """Those of the model by name, one of the host where a backend has none."""

    @property
    def memory(self) -> dict[object, int]:
        return {key: size for executable in self._loaded.values() for key, size in executable.memory.items()}

    @property
    def activation_bytes(self) -> int:
        return sum(executable.activation_bytes for executable in self._loaded.values())

    def load(self, name: str) -> PartitionedEntry:
        program = self._programs[name]
        entries: dict[tuple[str, str], QueueEntry] = {}
        for step in program.steps:
            if isinstance(step, Call):
                point, device = self._loaded[step.queue].load(step.entry), self.devices[step.queue]
                if not isinstance(point, QueueEntry):
                    assert isinstance(device, HostDevice)
                    point = HostEntry(point, device)
                entries[step.queue, step.entry] = point
        return PartitionedEntry(program, entries, self.devices, self.state)

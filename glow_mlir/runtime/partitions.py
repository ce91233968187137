"""Functions that are calls of partitions on devices: what is known of them, and what runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np

from glow_mlir.errors import CancelledError
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.device_array import DeviceArray, OutputTarget, Tensor, all_on_targets, is_apart, on_host
from glow_mlir.runtime.device_entry import Pending, QueuedEntryPoint, QueueEntry
from glow_mlir.runtime.devices import Buffer, Device, Event, wait_for_all
from glow_mlir.runtime.executable import Executable
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
from glow_mlir.runtime.placed_bindings import with_placed_bindings
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

    def attach(self, targets: Mapping[str, np.ndarray]) -> None:
        for name, target in targets.items():
            self._known(name)
            self._owners[name].attach({name: target})

    def change(self, names: Iterable[str]) -> None:
        chosen = tuple(names)
        super().change(chosen)
        for name in chosen:
            self._owners[name].change((name,))


class PartitionedEntry(QueuedEntryPoint):
    """An entry that is a host program: a call puts its steps into the queues of the devices, and waits for the end."""

    def __init__(
        self,
        program: HostProgram,
        entries: Mapping[tuple[str, str], QueueEntry],
        devices: Mapping[str, Device],
        state: State,
    ) -> None:
        super().__init__(program.name, program.bindings, state)
        self._entries = entries
        self._devices = devices
        self._programs: dict[tuple[tuple[int, str], ...], HostProgram] = {(): program}
        """The program for inputs and outputs in the memory of the host, or, by their numbers, of devices."""

    def begin(self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> Pending:
        with held(self._state.turn) if self._has_state else nullcontext():
            call = self._begun(inputs, targets)
            if self._has_state:  # What the host has of it may be looked at when the turn is over.
                call.finish()
            return call

    def _begun(self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> _PartitionedCall:
        bound = _Bound(self._devices)
        for number, binding in enumerate(self.bindings):
            if binding.role == "input":
                bound.read(number, inputs[binding.name])
            elif binding.role == "output":
                bound.write(number, binding, targets.get(binding.name))
        key = tuple(bound.homes.items())
        if key not in self._programs:
            self._programs[key] = with_placed_bindings(self._programs[()], bound.homes)
        run = _Run(self._entries, self._devices, bound.buffers)
        call = _PartitionedCall(run, bound, targets)
        call.take(self._programs[key].steps)
        return call


class _Bound:
    """The buffers of inputs and outputs: where they are on a device of the program, else on the host."""

    def __init__(self, devices: Mapping[str, Device]) -> None:
        self.buffers: dict[int, Buffer] = {}
        self.homes: dict[int, str] = {}
        """Number of an input or output → the device in whose memory it is."""
        self.found: dict[str, Tensor] = {}
        """The outputs, by name."""
        self._names = {device: name for name, device in devices.items()}
        self._tensors: list[Tensor] = []

    def read(self, number: int, value: Tensor) -> None:
        """Let an input be read where it is, or from a copy on the host."""
        home = self._names.get(value.device) if isinstance(value, DeviceArray) else None
        self._bind(number, on_host(value) if home is None else value, home)

    def write(self, number: int, binding: Binding, output_target: OutputTarget | None) -> None:
        """Let an output be written to a new tensor, or to its place where that is free memory of one of the devices."""
        if isinstance(output_target, Device) and output_target in self._names:
            output_target = DeviceArray.empty(output_target, binding.shape, binding.numpy_dtype)
        home = self._names.get(output_target.device) if isinstance(output_target, DeviceArray) else None
        if home is not None and isinstance(output_target, DeviceArray) and is_apart(output_target, self._tensors):
            self._bind(number, output_target, home)
        else:
            buffer = HostBuffer(binding.nbytes)
            self._bind(number, buffer.view(binding.shape, binding.numpy_dtype), None)
        self.found[binding.name] = self._tensors[-1]

    def _bind(self, number: int, tensor: Tensor, home: str | None) -> None:
        self._tensors.append(tensor)
        self.buffers[number] = tensor.buffer if isinstance(tensor, DeviceArray) else HostBuffer.of(tensor)
        if home is not None:
            self.homes[number] = home


class _PartitionedCall(Pending):
    """A call whose steps are in queues."""

    def __init__(self, run: _Run, bound: _Bound, targets: Mapping[str, OutputTarget]) -> None:
        self._run = run
        self._bound = bound
        """With the arrays that queues read and write."""
        self._targets = targets
        self._cancellation = current_cancellation() or Cancellation()

    def take(self, steps: Sequence[Step]) -> None:
        """Take all steps; what fails before they are in queues waits for the end of those that are."""
        with cancelled_by(self._cancellation):  # Which the threads of queues look at.
            try:
                for step in steps:
                    self._run.take(step)
            except BaseException:
                self.finish()  # Which raises what failed in queues before.
                raise

    def finish(self) -> None:
        """Wait for the end; where Ctrl-C interrupts that, for the end of what cannot be ended before."""
        try:
            self._run.finish()
        except KeyboardInterrupt:
            self._cancellation.cancel(CancelledError("the call was interrupted"))
            with suppress(CancelledError):
                self._run.finish()
            raise

    def wait(self) -> dict[str, Tensor]:
        self.finish()
        return all_on_targets(self._bound.found, self._targets)


class _Run:
    """One call of a host program: its buffers, and what has been put into queues so far."""

    def __init__(
        self,
        entries: Mapping[tuple[str, str], QueueEntry],
        devices: Mapping[str, Device],
        buffers: Mapping[int, Buffer],
    ) -> None:
        self.buffers = dict(buffers)
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
        elif isinstance(target, HostBuffer):
            self._keep(step.queue, device.download(source, target.array[: step.nbytes], after))
        else:  # An output that is an input, or another output: both are where the caller has them.
            between = HostBuffer(step.nbytes)
            self._keep(step.queue, device.download(source, between.array, after))
            self._keep(step.queue, device.upload(target, between.array, self._after(step.queue)))

    def finish(self) -> None:
        """
        Wait for all that is in queues, also where something failed, and give back what is left.

        Raises what failed first, in the order in which things were put into queues.
        """
        try:
            wait_for_all(self._put)
        finally:
            for number in list(self._homes):
                self._free(number)


class PartitionedExecutable(Executable):
    """Partitions on their devices, and the functions that call them."""

    def __init__(self, artifact: PartitionedArtifact, loaded: Mapping[str, Executable]) -> None:
        state = JoinedState(executable.state for executable in loaded.values())
        super().__init__([program.name for program in artifact.programs], state)
        self.programs = {program.name: program for program in artifact.programs}
        """The host program of each entry."""
        self._loaded = loaded
        self.devices = {name: executable.device or HostDevice(name) for name, executable in loaded.items()}
        """Those of the model by name, one of the host where a backend has none."""

    @property
    def is_queued(self) -> bool:
        return True

    @property
    def memory(self) -> dict[object, int]:
        return {key: size for executable in self._loaded.values() for key, size in executable.memory.items()}

    @property
    def activation_bytes(self) -> int:
        return sum(executable.activation_bytes for executable in self._loaded.values())

    def load(self, name: str) -> PartitionedEntry:
        program = self.programs[name]
        entries: dict[tuple[str, str], QueueEntry] = {}
        for step in program.steps:
            if isinstance(step, Call):
                point, device = self._loaded[step.queue].load(step.entry), self.devices[step.queue]
                if not isinstance(point, QueueEntry):
                    assert isinstance(device, HostDevice)
                    point = HostEntry(point, device)
                entries[step.queue, step.entry] = point
        return PartitionedEntry(program, entries, self.devices, self.state)

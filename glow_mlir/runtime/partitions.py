"""Functions that call partitions on devices: their artifacts, and their execution."""

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
    """The compiled partitions of one device; an inference uses up to `threads` threads."""

    device: str
    backend: str
    threads: int
    artifact: Any

    @property
    def number(self) -> int:
        """The number of the device within its backend."""
        return int(self.device.rpartition(":")[2])


@dataclass(frozen=True)
class PartitionedArtifact:
    """The artifacts of all devices, and the host programs that call them."""

    parts: tuple[DevicePart, ...]
    programs: tuple[HostProgram, ...]


class JoinedState(State):
    """The states of several devices as one; each array stays on its device."""

    def __init__(self, states: Iterable[State]) -> None:
        self._owners: dict[str, State] = {}
        super().__init__(())
        self._owners.update((name, state) for state in states for name in state.names)
        self._initial = {name: state.initial(name) for name, state in self._owners.items()}
        self.changes = dict.fromkeys(self._owners, 0)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All states by name."""
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
    """An entry that is a host program: a call queues its steps on the devices, and waits for the end."""

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
        """The program for inputs and outputs in host memory, or, given by number, in device memory."""

    def begin(self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]) -> Pending:
        with held(self._state.turn) if self._has_state else nullcontext():
            call = self._begun(inputs, targets)
            if self._has_state:  # The host may read its state after the turn.
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
    """The buffers of inputs and outputs: on a device of the program, or on the host."""

    def __init__(self, devices: Mapping[str, Device]) -> None:
        self.buffers: dict[int, Buffer] = {}
        self.homes: dict[int, str] = {}
        """Number of an input or output → the device whose memory holds it."""
        self.found: dict[str, Tensor] = {}
        """The outputs, by name."""
        self._names = {device: name for name, device in devices.items()}
        self._tensors: list[Tensor] = []

    def read(self, number: int, value: Tensor) -> None:
        """Read an input in place, or from a copy on the host."""
        home = self._names.get(value.device) if isinstance(value, DeviceArray) else None
        self._bind(number, on_host(value) if home is None else value, home)

    def write(self, number: int, binding: Binding, output_target: OutputTarget | None) -> None:
        """Write an output to a new tensor, or to its target if that is memory of one of the devices without overlap."""
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
    """A call whose steps are queued."""

    def __init__(self, run: _Run, bound: _Bound, targets: Mapping[str, OutputTarget]) -> None:
        self._run = run
        self._bound = bound
        """Includes the arrays that queues read and write."""
        self._targets = targets
        self._cancellation = current_cancellation() or Cancellation()

    def take(self, steps: Sequence[Step]) -> None:
        """Queue all steps; on failure, wait for the end of the queued ones first."""
        with cancelled_by(self._cancellation):  # Queue threads check it.
            try:
                for step in steps:
                    self._run.take(step)
            except BaseException:
                self.finish()  # Raises earlier failures of queues.
                raise

    def finish(self) -> None:
        """Wait for the end; after Ctrl-C, also wait for work that cannot be cancelled."""
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
    """One call of a host program: its buffers and queued operations."""

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
        """Buffer → the device whose memory it was allocated in."""
        self._put: list[Event] = []
        """The queued operations, in order."""
        self._last: dict[str, Event] = {}
        """Queue → its last operation."""
        self._events: dict[int, Event | None] = {}
        self._awaited: dict[str, list[Event]] = {}
        """Queue → events that its next operation has to wait for."""

    def take(self, step: Step) -> None:
        """Execute a step."""
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
        """
        The events that the next operation of a queue waits for, including its previous operation, so that nothing runs
        after a failure.
        """
        last = self._last.get(queue)
        return [*([] if last is None else [last]), *self._awaited.pop(queue, ())]

    def _keep(self, queue: str, event: Event) -> None:
        self._last[queue] = event
        self._put.append(event)

    def _transfer(self, step: Transfer) -> None:
        device, after = self._devices[step.queue], self._after(step.queue)
        target, source = self.buffers[step.target], self.buffers[step.source]
        if isinstance(source, HostBuffer):  # The target may be one too.
            self._keep(step.queue, device.upload(target, source.array[: step.nbytes], after))
        elif isinstance(target, HostBuffer):
            self._keep(step.queue, device.download(source, target.array[: step.nbytes], after))
        else:  # An output that is an input or another output: both are the caller's.
            between = HostBuffer(step.nbytes)
            self._keep(step.queue, device.download(source, between.array, after))
            self._keep(step.queue, device.upload(target, between.array, self._after(step.queue)))

    def finish(self) -> None:
        """
        Wait for all queued operations, even after a failure, and free the remaining buffers.

        Raises the first failure, in queueing order.
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
        """The devices by their names in the model; a host device where a backend has none."""

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

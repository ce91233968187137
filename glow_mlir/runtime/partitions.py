"""Functions that are calls of partitions on devices: what is known of them, and what runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.devices import Buffer, Device, Event, QueueEntry
from glow_mlir.runtime.executable import EntryPoint, Executable
from glow_mlir.runtime.host_device import HostBuffer, HostDevice, HostEntry
from glow_mlir.runtime.state import State
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class PartitionCall:
    """
    A call of a partition: its device and entry, and the values that it is given and gives, in the order of its entry.

    A value is named `input:x`, `output:y` or `between:t`.
    """

    device: str
    entry: str
    values: tuple[str, ...]
    writes: tuple[bool, ...]
    """For each of the values, whether the partition writes it."""


@dataclass(frozen=True)
class PartitionedFunction:
    """A function that callers name, and the calls of partitions that it is, in order."""

    name: str
    bindings: tuple[Binding, ...]
    calls: tuple[PartitionCall, ...]


@dataclass(frozen=True)
class DevicePart:
    """What the backend of a device made of the partitions on it; an inference computes in up to `threads`."""

    device: str
    backend: str
    threads: int
    artifact: Any


@dataclass(frozen=True)
class PartitionedArtifact:
    """What is compiled for each device, and the functions that call it."""

    parts: tuple[DevicePart, ...]
    functions: tuple[PartitionedFunction, ...]


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


@dataclass
class _Copy:
    """A value on one device, or on all that share the memory of the host."""

    device: Device
    buffer: Buffer
    after: Event | None


class PartitionedEntry(EntryPoint):
    """
    A function that puts calls of its partitions into the queues of their devices.

    A value is where it is computed, and goes to another device when that reads it, once. Devices in the memory of the
    host share buffers. The next call of the function may begin while this one waits.
    """

    def __init__(
        self,
        function: PartitionedFunction,
        entries: Mapping[tuple[str, str], QueueEntry],
        devices: Mapping[str, Device],
        state: State,
    ) -> None:
        super().__init__(function.name, function.bindings, state)
        self._calls = [(call, entries[call.device, call.entry], devices[call.device]) for call in function.calls]
        self._host = HostDevice("host")
        self._last = self._last_uses()

    def _last_uses(self) -> dict[str, int]:
        """Value → the number of the last call that uses it."""
        return {value: number for number, (call, _, _) in enumerate(self._calls) for value in call.values}

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        copies: dict[str, list[_Copy]] = {}
        for binding in self.bindings:
            if binding.role == "input":
                given = HostBuffer.of(inputs[binding.name])
                copies[f"input:{binding.name}"] = [_Copy(self._host, given, None)]
        waited: list[Event] = []
        owned: list[tuple[Device, Buffer]] = []
        try:
            for call, entry, device in self._calls:
                waited.append(self._run(call, entry, device, copies, owned))
            results = {
                binding.name: self._result(binding, copies[f"output:{binding.name}"][0], waited)
                for binding in self.bindings
                if binding.role == "output"
            }
            for event in waited:
                event.wait()
        finally:
            for device, buffer in owned:
                device.free(buffer)
        return results

    def _run(
        self,
        call: PartitionCall,
        entry: QueueEntry,
        device: Device,
        copies: dict[str, list[_Copy]],
        owned: list[tuple[Device, Buffer]],
    ) -> Event:
        """Put one call into the queue of its device."""
        buffers: list[Buffer] = []
        after: list[Event] = []
        made: list[_Copy] = []
        for value, is_written, binding in zip(call.values, call.writes, entry.passed, strict=True):
            if is_written:
                copy = _Copy(device, device.allocate(binding.nbytes), None)
                owned.append((device, copy.buffer))
                copies[value] = [copy]
                made.append(copy)
            else:
                copy = _there(copies[value], device, binding, owned)
                if copy.after is not None:
                    after.append(copy.after)
            buffers.append(copy.buffer)
        done = entry.enqueue(buffers, after)
        for copy in made:
            copy.after = done
        return done

    def _result(self, binding: Binding, copy: _Copy, waited: list[Event]) -> np.ndarray:
        """An output as an array, which is filled when all that is `waited` for is done."""
        if isinstance(copy.buffer, HostBuffer):
            return copy.buffer.view(binding.shape, binding.numpy_dtype)
        place = np.empty(binding.shape, binding.numpy_dtype)
        waited.append(copy.device.download(copy.buffer, place, () if copy.after is None else (copy.after,)))
        return place


def _there(copies: list[_Copy], device: Device, binding: Binding, owned: list[tuple[Device, Buffer]]) -> _Copy:
    """The copy of a value on a device, which it is sent to where there is none yet."""
    for copy in copies:
        if copy.device is device or (copy.device.memory.is_host and device.memory.is_host):
            return copy
    source = copies[0]
    after = () if source.after is None else (source.after,)
    if not source.device.memory.is_host:
        landed = HostBuffer(binding.nbytes)
        event = source.device.download(source.buffer, landed.array, after)
        copies.append(_Copy(HostDevice("host"), landed, event))
        return _there(copies[-1:], device, binding, owned) if not device.memory.is_host else copies[-1]
    assert isinstance(source.buffer, HostBuffer)
    target = device.allocate(binding.nbytes)
    owned.append((device, target))
    made = _Copy(device, target, device.upload(target, source.buffer.array[: binding.nbytes], after))
    copies.append(made)
    return made


class PartitionedExecutable(Executable):
    """Partitions on their devices, and the functions that call them."""

    def __init__(self, artifact: PartitionedArtifact, loaded: Mapping[str, tuple[Device, Executable]]) -> None:
        state = JoinedState(executable.state for _, executable in loaded.values())
        super().__init__([function.name for function in artifact.functions], state)
        self._functions = {function.name: function for function in artifact.functions}
        self._loaded = loaded

    @property
    def memory(self) -> dict[object, int]:
        return {key: size for _, executable in self._loaded.values() for key, size in executable.memory.items()}

    @property
    def activation_bytes(self) -> int:
        return sum(executable.activation_bytes for _, executable in self._loaded.values())

    @property
    def devices(self) -> Sequence[Device]:
        """The devices, in the order in which they were listed."""
        return [device for device, _ in self._loaded.values()]

    def load(self, name: str) -> PartitionedEntry:
        function = self._functions[name]
        entries: dict[tuple[str, str], QueueEntry] = {}
        for call in function.calls:
            device, executable = self._loaded[call.device]
            point = executable.load(call.entry)
            if isinstance(point, QueueEntry):
                entries[call.device, call.entry] = point
            else:
                assert isinstance(device, HostDevice)
                entries[call.device, call.entry] = HostEntry(point, device)
        devices = {name: device for name, (device, _) in self._loaded.items()}
        return PartitionedEntry(function, entries, devices, self.state)

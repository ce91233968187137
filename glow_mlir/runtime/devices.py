"""
Devices: places where functions of compiled models run, each with its memory and a queue.

A backend's device implements `Device`, and its entries `DeviceEntry`: what a queue does, with buffers and events. Calls
with numpy arrays, state that stays on a device, and the transfers between devices are made of these here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext

import numpy as np

from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.executable import EntryPoint
from glow_mlir.runtime.state import Initial, State
from glow_mlir.support.cancellation import held
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of a device: how many bytes there are, 0 for as many as the host has, and how buffers begin in it."""

    nbytes: int = 0
    alignment: int = 64
    """Every buffer begins at a multiple of so many bytes."""
    is_host: bool = False
    """Whether it is the memory of the process, in which the host and other such devices read and write."""


class Event(ABC):
    """Something that a queue does, now or later."""

    @abstractmethod
    def wait(self) -> None:
        """Return when it is done; raises what it failed with."""

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """Whether it is done, or has failed."""


class Buffer(ABC):
    """Bytes in the memory of a device."""

    nbytes: int


class Device(ABC):
    """
    A place where functions run: memory, and a queue that does one thing after another in the order given.

    What is put into the queue waits for the events it is said to come `after`, those of other devices among them.
    Several threads may use a device at once. Arrays that are uploaded from or downloaded to are left alone until the
    event is done.
    """

    name: str
    """What people call it, such as `opencl:0`."""
    memory: DeviceMemory

    @abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """A buffer of so many bytes, whatever they are; raises `OutOfMemoryError`."""

    @abstractmethod
    def free(self, buffer: Buffer) -> None:
        """Give a buffer back, for when the queue has done what it was given so far."""

    @abstractmethod
    def upload(self, buffer: Buffer, source: np.ndarray, after: Sequence[Event] = ()) -> Event:
        """Copy a contiguous array to the beginning of a buffer."""

    @abstractmethod
    def download(self, buffer: Buffer, place: np.ndarray, after: Sequence[Event] = ()) -> Event:
        """Copy the beginning of a buffer into a contiguous array, which it fills."""


class DeviceState(State):
    """
    State that stays on a device from call to call: what is on the host is as new only when somebody looks.
    """

    def __init__(self, initial: Iterable[Initial], device: Device) -> None:
        self._newer_here: set[str] = set()
        self._newer_there: set[str] = set()
        self._buffers: dict[str, Buffer] = {}
        self._device = device
        super().__init__(initial)
        self._newer_here.update(self._host)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All of it on the host, as it is now; to be written by who has called `change` alone."""
        events = [self._device.download(self._buffers[name], self._host[name]) for name in self._newer_there]
        for event in events:
            event.wait()
        self._newer_there.clear()
        return self._host

    @arrays.setter
    def arrays(self, arrays: dict[str, np.ndarray]) -> None:
        self._host = arrays

    def change(self, names: Iterable[str]) -> None:
        chosen = tuple(names)
        super().change(chosen)
        self._newer_here.update(chosen)

    def place(self, places: Mapping[str, np.ndarray]) -> None:
        super().place(places)
        self._newer_here.update(places)

    def buffer(self, name: str) -> Buffer:
        """The state of that name on the device, by whoever has the turn."""
        found = self._buffers.get(name)
        if found is None:
            found = self._buffers[name] = self._device.allocate(self._host[name].nbytes)
        if name in self._newer_here:
            self._device.upload(found, self._host[name]).wait()
            self._newer_here.discard(name)
        return found

    def written(self, names: Iterable[str]) -> None:
        """Say that the queue has been given what writes some of it on the device, by whoever has the turn."""
        chosen = tuple(names)
        super().change(chosen)
        self._newer_there.update(chosen)


class QueueEntry(ABC):
    """A function that the queue of a device runs."""

    bindings: tuple[Binding, ...]

    @property
    def passed(self) -> tuple[Binding, ...]:
        """The inputs and outputs, in order."""
        return tuple(binding for binding in self.bindings if binding.role in ("input", "output"))

    @abstractmethod
    def enqueue(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        """
        Put a call into the queue of the device, on a buffer for each of the inputs and outputs.

        Each has at least the bytes of its binding. What fails does so in the event. Calls of functions with state are
        put there by one thread at a time, in the order in which they are to see it.
        """


class DeviceEntry(EntryPoint, QueueEntry):
    """A function on a device: `submit` is what its queue does, and a call with arrays is made of that."""

    def __init__(self, name: str, bindings: Sequence[Binding], state: State, device: Device) -> None:
        super().__init__(name, bindings, state)
        self.device = device

    @abstractmethod
    def submit(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        """
        Put a call into the queue of the device, on a buffer for each of the `bindings`, state among them.

        Packed state has none here: a device that wants it makes it itself.
        """

    def enqueue(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        given, state = iter(buffers), self._state
        kept = [binding.name for binding in self.bindings if binding.role == "state"]
        if not kept:
            return self.submit(buffers, after)
        assert isinstance(state, DeviceState)
        bound = (item for item in self.bindings if item.role != "packed")
        every = [state.buffer(item.name) if item.role == "state" else next(given) for item in bound]
        done = self.submit(every, after)
        state.written(kept)
        return done

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        # The state stays where it is: nobody looks at its arrays.
        with held(self._state.turn) if self._has_state else nullcontext():
            return self._call(inputs, {})

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        device, waited = self.device, list[Event]()
        buffers: list[Buffer] = []
        results: dict[str, tuple[Buffer, np.ndarray]] = {}
        try:
            for binding in self.passed:
                buffers.append(device.allocate(binding.nbytes))
                if binding.role == "input":
                    waited.append(device.upload(buffers[-1], inputs[binding.name]))
                else:
                    results[binding.name] = buffers[-1], np.empty(binding.shape, binding.numpy_dtype)
            done = self.enqueue(buffers, waited)
            waited += [done, *(device.download(buffer, place, (done,)) for buffer, place in results.values())]
            for event in waited:
                event.wait()
        finally:
            for buffer in buffers:
                device.free(buffer)
        return {name: place for name, (_, place) in results.items()}

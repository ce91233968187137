"""
Devices: places where functions of compiled models run, each with its memory and a queue.

A backend's device implements `Device`, and its entries `DeviceEntry` (`runtime.device_entry`): what a queue does, with
buffers and events. Calls with arrays, state that stays on a device, and transfers between devices are made of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from glow_mlir.errors import OptionError
from glow_mlir.runtime.state import Initial, State
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
        """Return when the event has happened; raises its error."""

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """Whether it is done, or has failed."""


def wait_for_all(events: Sequence[Event]) -> None:
    """Wait for all that was put into queues in this order, also where some fails; raises what failed first."""
    errors: list[Exception] = []
    for event in reversed(events):  # When the last is done, most are, and nobody wakes up in between.
        try:
            event.wait()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[-1]


class Buffer(ABC):
    """Bytes in the memory of a device, which are given back when nobody has it any more, if they were not freed."""

    nbytes: int


class Device(ABC):
    """
    A place where functions run: memory, and a queue that does one thing after another in the order given.

    What is put into the queue waits for the events it is said to come `after`, those of other devices among them.
    Several threads may use a device at once. Arrays that are uploaded from or downloaded to are left alone until the
    event is done.
    """

    name: str
    """The name for people, such as `opencl:0`."""
    memory: DeviceMemory

    @abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """An uninitialized buffer of this size; raises `OutOfMemoryError`."""

    @abstractmethod
    def free(self, buffer: Buffer) -> None:
        """Free a buffer after the operations that are in the queue now."""

    @abstractmethod
    def upload(self, buffer: Buffer, source: np.ndarray, after: Sequence[Event] = ()) -> Event:
        """Copy a contiguous array to the beginning of a buffer."""

    @abstractmethod
    def download(self, buffer: Buffer, target: np.ndarray, after: Sequence[Event] = ()) -> Event:
        """Copy the beginning of a buffer into a contiguous array, until the array is full."""

    @property
    def dlpack_device(self) -> tuple[int, int] | None:
        """Its type and number in DLPack; `None` where its memory is not shared with other libraries."""
        return None

    @property
    def stream_address(self) -> int | None:
        """The address of the stream that other libraries have to wait for, where they know of such."""
        return None

    def address(self, buffer: Buffer) -> int:
        """The address of a buffer; raises `OptionError` if the device has no addresses that others can use."""
        raise OptionError(f"the memory of {self.name} has no addresses", hint="numpy() gives a copy on the host")

    def shared(self, address: int, nbytes: int, owner: object = None, stream: int | None = None) -> Buffer:
        """
        Memory of another library on this device as a buffer, valid as long as `owner` lives, as that does with it.

        `stream` is the address of the one that is still writing it. Raises `OptionError` where the device shares none.
        """
        raise OptionError(f"the memory of {self.name} cannot be shared", hint="give an array, which is copied")


class DeviceState(State):
    """State that stays on a device between calls; the copy on the host is refreshed when it is read."""

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

    def attach(self, targets: Mapping[str, np.ndarray]) -> None:
        super().attach(targets)
        self._newer_here.update(targets)

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

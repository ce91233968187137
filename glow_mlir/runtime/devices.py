"""
Devices: places where compiled functions run, each with its memory and a queue.

A backend implements `Device`, and `DeviceEntry` for its entries (`runtime.device_entry`): the operations of a queue on
buffers and events. Calls with arrays, state on a device, and transfers between devices are built from these.
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
    """The memory of a device: its bytes (0 for as many as the host has), and the alignment of buffers."""

    nbytes: int = 0
    alignment: int = 64
    """The alignment of buffers in bytes."""
    is_host: bool = False
    """Whether it is host memory, which the host and other such devices can access."""


class Event(ABC):
    """The completion of a queued operation."""

    @abstractmethod
    def wait(self) -> None:
        """Wait for the event; raises its error."""

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """Whether it is done or has failed."""


def wait_for_all(events: Sequence[Event]) -> None:
    """Wait for operations queued in this order, even if some fail; raises the first error."""
    errors: list[Exception] = []
    for event in reversed(events):  # When the last is done, most are: fewer wake-ups.
        try:
            event.wait()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[-1]


class Buffer(ABC):
    """Bytes in device memory, freed with the last reference, or earlier by `free`."""

    nbytes: int


class Device(ABC):
    """
    A place where functions run: memory, and a queue that performs operations in order.

    An operation waits for its `after` events, which may belong to other devices. Several threads may use a device at
    once. Arrays must not change until the event of their upload or download is done.
    """

    name: str
    """A readable name, such as `opencl:0`."""
    memory: DeviceMemory

    @abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """An uninitialized buffer of this size; raises `OutOfMemoryError`."""

    @abstractmethod
    def free(self, buffer: Buffer) -> None:
        """Free a buffer after the operations that are queued now."""

    @abstractmethod
    def upload(self, buffer: Buffer, source: np.ndarray, after: Sequence[Event] = ()) -> Event:
        """Copy a contiguous array to the start of a buffer."""

    @abstractmethod
    def download(self, buffer: Buffer, target: np.ndarray, after: Sequence[Event] = ()) -> Event:
        """Fill a contiguous array from the start of a buffer."""

    @property
    def dlpack_device(self) -> tuple[int, int] | None:
        """Its DLPack type and number; `None` if its memory is not shared with other libraries."""
        return None

    @property
    def stream_address(self) -> int | None:
        """The address of the stream that other libraries have to wait for, if there is one."""
        return None

    def address(self, buffer: Buffer) -> int:
        """The address of a buffer; raises `OptionError` if the device has no addresses that others can use."""
        raise OptionError(f"the memory of {self.name} has no addresses", hint="numpy() gives a copy on the host")

    def shared(self, address: int, nbytes: int, owner: object = None, stream: int | None = None) -> Buffer:
        """
        A buffer for another library's memory on this device, valid while `owner` lives; the buffer keeps it alive.

        `stream` is the address of the stream that may still write to it. Raises `OptionError` if the device cannot
        share memory.
        """
        raise OptionError(f"the memory of {self.name} cannot be shared", hint="give an array, which is copied")


class DeviceState(State):
    """State that stays on a device between calls; the host copy is refreshed when it is read."""

    def __init__(self, initial: Iterable[Initial], device: Device) -> None:
        self._newer_here: set[str] = set()
        self._newer_there: set[str] = set()
        self._buffers: dict[str, Buffer] = {}
        self._device = device
        super().__init__(initial)
        self._newer_here.update(self._host)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The present state on the host; may be written only after a call of `change`."""
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
        """The device buffer of a state; requires the turn."""
        found = self._buffers.get(name)
        if found is None:
            found = self._buffers[name] = self._device.allocate(self._host[name].nbytes)
        if name in self._newer_here:
            self._device.upload(found, self._host[name]).wait()
            self._newer_here.discard(name)
        return found

    def written(self, names: Iterable[str]) -> None:
        """Record that queued operations write these states on the device; requires the turn."""
        chosen = tuple(names)
        super().change(chosen)
        self._newer_there.update(chosen)

"""What the backend asks of a driver: memory, streams, events, modules, launches and graphs of one process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from glow_mlir.support.dataclass import dataclass

Handle = Any
"""Something that the driver has made, and knows again."""


@dataclass(frozen=True)
class Properties:
    """What a device is: its name, its generation, such as 80, and the bytes of its memory."""

    name: str
    generation: int
    nbytes: int


@dataclass(frozen=True)
class Grid:
    """How many blocks a launch has, and how many threads each."""

    blocks: int
    threads: int


class Driver(ABC):
    """
    A driver of devices. Addresses are numbers; what is put into a stream is done in the order in which it is put there.

    What fails raises `ExecutionError`, and `OutOfMemoryError` where memory is what lacks.
    """

    DLPACK: ClassVar[int]
    """The type of its devices in DLPack."""

    @abstractmethod
    def count(self) -> int:
        """How many devices there are."""

    @abstractmethod
    def properties(self, device: int) -> Properties:
        """What the device of that number is."""

    @abstractmethod
    def open(self, device: int) -> Handle:
        """What the calls below are about, once it is used."""

    @abstractmethod
    def use(self, context: Handle) -> None:
        """Let the calls of this thread be about an open device."""

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """The address of memory of the device, a multiple of 256."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Give memory of the device back."""

    @abstractmethod
    def allocate_pinned(self, nbytes: int) -> int:
        """The address of memory of the host that the device copies from and to by itself."""

    @abstractmethod
    def free_pinned(self, address: int) -> None:
        """Give such memory back."""

    @abstractmethod
    def stream(self) -> Handle:
        """A new stream."""

    @abstractmethod
    def device_at(self, address: int) -> int:
        """The number of the device that has memory at an address."""

    @abstractmethod
    def stream_address(self, stream: Handle) -> int | None:
        """The address by which other libraries know a stream; `None` where they know none."""

    @abstractmethod
    def synchronize(self, stream: int) -> None:
        """Return when a stream of another library, by its address, has done what it was given so far."""

    @abstractmethod
    def upload(self, address: int, source: int, nbytes: int, stream: Handle) -> None:
        """Copy pinned memory of the host to the device."""

    @abstractmethod
    def download(self, host_address: int, address: int, nbytes: int, stream: Handle) -> None:
        """Copy memory of the device to pinned memory of the host."""

    @abstractmethod
    def clear(self, address: int, nbytes: int, stream: Handle) -> None:
        """Write zeros to memory of the device."""

    @abstractmethod
    def record(self, stream: Handle) -> Handle:
        """An event: that the stream has done what it was given so far."""

    @abstractmethod
    def forget(self, event: Handle) -> None:
        """Give an event back."""

    @abstractmethod
    def is_done(self, event: Handle) -> bool:
        """Whether it has happened."""

    @abstractmethod
    def wait(self, event: Handle) -> None:
        """Return when it has happened."""

    @abstractmethod
    def load(self, code: bytes) -> Handle:
        """A module of device functions."""

    @abstractmethod
    def function(self, module: Handle, name: str) -> Handle:
        """A function of a module."""

    @abstractmethod
    def launch(self, function: Handle, grid: Grid, values: Sequence[int], stream: Handle) -> None:
        """Run a function over a grid; each of its parameters is an address, or a number, of 64 bits."""

    @abstractmethod
    def capture(self, stream: Handle) -> None:
        """Keep what the stream is given from now on in a graph, instead of doing it."""

    @abstractmethod
    def captured(self, stream: Handle) -> Handle:
        """The graph of all that was kept; what the stream is given from now on is done again."""

    @abstractmethod
    def launch_graph(self, graph: Handle, stream: Handle) -> None:
        """Do all that a graph has, in its order."""

    @abstractmethod
    def forget_graph(self, graph: Handle) -> None:
        """Give a graph back."""

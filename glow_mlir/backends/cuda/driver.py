"""The interface of a driver: memory, streams, events, modules, launches and graphs of one process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from glow_mlir.support.dataclass import dataclass

Handle = Any
"""An object of the driver."""


@dataclass(frozen=True)
class Properties:
    """The properties of a device: its name, its generation, such as 80, and its memory in bytes."""

    name: str
    generation: int
    nbytes: int


@dataclass(frozen=True)
class Grid:
    """The number of blocks of a launch, and of threads per block."""

    blocks: int
    threads: int


class Driver(ABC):
    """
    A driver of devices. Addresses are numbers; the operations of a stream run in order.

    Failures raise `ExecutionError`, or `OutOfMemoryError` for lack of memory.
    """

    DLPACK: ClassVar[int]
    """The DLPack type of its devices."""

    @abstractmethod
    def count(self) -> int:
        """The number of devices."""

    @abstractmethod
    def properties(self, device: int) -> Properties:
        """The properties of a device."""

    @abstractmethod
    def open(self, device: int) -> Handle:
        """A context of a device, for the calls below."""

    @abstractmethod
    def use(self, context: Handle) -> None:
        """Direct the calls of this thread to an open device."""

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """Allocate device memory; the address is a multiple of 256."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Free device memory."""

    @abstractmethod
    def allocate_pinned(self, nbytes: int) -> int:
        """Allocate pinned host memory, which the device can copy from and to."""

    @abstractmethod
    def free_pinned(self, address: int) -> None:
        """Free pinned memory."""

    @abstractmethod
    def stream(self) -> Handle:
        """A new stream."""

    @abstractmethod
    def device_at(self, address: int) -> int:
        """The number of the device that owns the memory at an address."""

    @abstractmethod
    def stream_address(self, stream: Handle) -> int | None:
        """The address of a stream for other libraries; `None` if they know none."""

    @abstractmethod
    def synchronize(self, stream: int) -> None:
        """Wait until another library's stream, given by its address, has finished its present operations."""

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
        """An event for the completion of the stream's present operations."""

    @abstractmethod
    def forget(self, event: Handle) -> None:
        """Release an event."""

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
        """Record the following operations of the stream in a graph, instead of executing them."""

    @abstractmethod
    def captured(self, stream: Handle) -> Handle:
        """The graph of the recorded operations; the stream executes operations again."""

    @abstractmethod
    def launch_graph(self, graph: Handle, stream: Handle) -> None:
        """Execute all operations of a graph in order."""

    @abstractmethod
    def forget_graph(self, graph: Handle) -> None:
        """Release a graph."""

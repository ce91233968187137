"""A device of OpenCL: its context, one queue that does one thing after another, and its buffers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from glow_mlir.backends.opencl.library import device_at, opencl
from glow_mlir.errors import ExecutionError, OutOfMemoryError
from glow_mlir.runtime.devices import Buffer, Device, DeviceMemory, Event

_BYTE = 8


class OpenCLEvent(Event):
    """What a queue of OpenCL does."""

    def __init__(self, event: Any) -> None:
        self.event = event

    def wait(self) -> None:
        cl = opencl()
        try:
            self.event.wait()
        except cl.Error as error:
            raise ExecutionError(f"the device failed: {error}") from error

    @property
    def is_done(self) -> bool:
        return self.event.command_execution_status <= opencl().command_execution_status.COMPLETE


class Done(Event):
    """Nothing, which is done."""

    def wait(self) -> None:
        pass

    @property
    def is_done(self) -> bool:
        return True


class OpenCLBuffer(Buffer):
    """A memory object."""

    def __init__(self, memory: Any, nbytes: int) -> None:
        self.memory = memory
        self.nbytes = nbytes


class OpenCLDevice(Device):
    """
    A device with an in-order queue.

    Memory that is given back is kept by OpenCL as long as the queue needs it. Buffers are not cut into others: these
    would have to begin where the device wants, and kernels take offsets anyway.
    """

    def __init__(self, name: str) -> None:
        cl = opencl()
        self.name = name
        self.handle = device_at(name)
        self.context = cl.Context([self.handle])
        self.queue = cl.CommandQueue(self.context, self.handle)
        alignment = max(1, self.handle.mem_base_addr_align // _BYTE)
        self.memory = DeviceMemory(self.handle.global_mem_size, alignment)

    def allocate(self, nbytes: int) -> OpenCLBuffer:
        cl = opencl()
        try:
            return OpenCLBuffer(cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, nbytes)), nbytes)
        except cl.Error as error:
            raise OutOfMemoryError(f"there are no {nbytes} bytes of memory on {self.name}") from error

    def free(self, buffer: Buffer) -> None:
        assert isinstance(buffer, OpenCLBuffer)
        buffer.memory.release()

    def upload(self, buffer: Buffer, source: np.ndarray, after: Sequence[Event] = ()) -> Event:
        return self._copy(buffer, source, after, is_upload=True)

    def download(self, buffer: Buffer, place: np.ndarray, after: Sequence[Event] = ()) -> Event:
        return self._copy(buffer, place, after, is_upload=False)

    def _copy(self, buffer: Buffer, array: np.ndarray, after: Sequence[Event], *, is_upload: bool) -> Event:
        assert isinstance(buffer, OpenCLBuffer)
        events = self.awaited(after)
        if not array.nbytes:
            return Done()
        ways = (buffer.memory, _bytes(array)) if is_upload else (_bytes(array), buffer.memory)
        return OpenCLEvent(opencl().enqueue_copy(self.queue, *ways, is_blocking=False, wait_for=events))

    def awaited(self, after: Sequence[Event]) -> list[Any] | None:
        """What the queue has to wait for itself: events of other queues of its context; others are waited for here."""
        for event in after:
            if not isinstance(event, OpenCLEvent):
                event.wait()
        return [event.event for event in after if isinstance(event, OpenCLEvent) and not self._is_own(event)] or None

    def _is_own(self, event: OpenCLEvent) -> bool:
        """Whether this queue does it, and hence has done it before whatever it is given next."""
        return event.event.command_queue == self.queue


def _bytes(array: np.ndarray) -> np.ndarray:
    """An array as bytes: element types of other packages are no concern of OpenCL's."""
    return array.reshape(-1).view(np.uint8)


@cache
def device(name: str) -> OpenCLDevice:
    """The device that is called `opencl:N`, one for all that is loaded; raises `OptionError` where there is none."""
    return OpenCLDevice(name)

"""An OpenCL device: its context, one in-order queue, and its buffers."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from glow_mlir.backends.opencl.library import device_at, opencl
from glow_mlir.errors import ExecutionError, OutOfMemoryError
from glow_mlir.runtime.devices import Buffer, Device, DeviceMemory, Event

_BYTE = 8


_OUT_OF_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY")
"""Error codes for lack of memory; many drivers report it only when a buffer is used."""


@contextmanager
def naming_failures(name: str, purpose: str) -> Generator[None]:
    """Convert OpenCL's errors about the named device to `OutOfMemoryError` or `ExecutionError`."""
    cl = opencl()
    try:
        yield
    except cl.Error as error:
        if any(word in str(error) for word in _OUT_OF_MEMORY):
            raise OutOfMemoryError(f"there is too little memory on {name} for {purpose}") from error
        raise ExecutionError(f"{name} fails in {purpose}: {' '.join(str(error).split())}") from error


class OpenCLEvent(Event):
    """An operation of an OpenCL queue after other events; it fails if they fail."""

    def __init__(self, event: Any, after: Sequence[Event] = ()) -> None:
        self.event = event
        self._after = tuple(after)

    def wait(self) -> None:
        for event in self._after:
            event.wait()
        self._after = ()
        cl = opencl()
        try:
            self.event.wait()
        except cl.Error as error:
            raise ExecutionError(f"the device failed: {error}") from error

    @property
    def is_done(self) -> bool:
        return self.event.command_execution_status <= opencl().command_execution_status.COMPLETE


class Nothing(Event):
    """An empty operation, complete when other events are."""

    def __init__(self, after: Sequence[Event]) -> None:
        self._after = tuple(after)

    def wait(self) -> None:
        for event in self._after:
            event.wait()

    @property
    def is_done(self) -> bool:
        return all(event.is_done for event in self._after)


class OpenCLBuffer(Buffer):
    """A memory object."""

    def __init__(self, memory: Any, nbytes: int) -> None:
        self.memory = memory
        self.nbytes = nbytes


class OpenCLDevice(Device):
    """
    A device with an in-order queue.

    OpenCL keeps released memory as long as the queue needs it. Buffers are not suballocated, because of the device's
    alignment, and because kernels take offsets anyway.
    """

    def __init__(self, name: str) -> None:
        cl = opencl()
        self.name = name
        self.handle = device_at(name)
        with naming_failures(name, "its queue"):
            self.context = cl.Context([self.handle])
            self.queue = cl.CommandQueue(self.context, self.handle)
        self._seeing = ThreadPoolExecutor(1, thread_name_prefix=f"glow-{name}")
        """The thread that waits for other devices, started when needed."""
        self._copies = deque[Any]()
        """The events of pending copies, in queue order."""
        self._lock = Lock()
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

    def download(self, buffer: Buffer, target: np.ndarray, after: Sequence[Event] = ()) -> Event:
        return self._copy(buffer, target, after, is_upload=False)

    def _copy(self, buffer: Buffer, array: np.ndarray, after: Sequence[Event], *, is_upload: bool) -> Event:
        assert isinstance(buffer, OpenCLBuffer)
        if not array.nbytes:
            return Nothing(after)
        events = self.awaited(after)
        ways = (buffer.memory, _bytes(array)) if is_upload else (_bytes(array), buffer.memory)
        with naming_failures(self.name, f"a copy of {array.nbytes:,} bytes"):
            copied = self.copied(*ways, awaited=events)
            self.queue.flush()
        return OpenCLEvent(copied, after)

    def copied(self, target: Any, source: Any, awaited: Any = None) -> Any:
        """
        Queue a copy between a buffer and an array; return its event.

        PyOpenCL waits for such an event when the last reference is dropped, and blocks all other Python threads
        meanwhile, possibly the one it waits for. So the event is kept until it is complete.
        """
        cl = opencl()
        event = cl.enqueue_copy(self.queue, target, source, is_blocking=False, wait_for=awaited)
        with self._lock:
            while self._copies and OpenCLEvent(self._copies[0]).is_done:
                self._copies.popleft()
            self._copies.append(event)
        return event

    def awaited(self, after: Sequence[Event]) -> list[Any] | None:
        """The events that the queue has to wait for; its own earlier operations complete first anyway."""
        foreign = [event for event in after if not self._is_own(event) and not event.is_done]
        return [self._awaited(event) for event in foreign] or None

    def _is_own(self, event: Event) -> bool:
        return isinstance(event, OpenCLEvent) and event.event.command_queue == self.queue

    def _awaited(self, event: Event) -> Any:
        """A user event of this context, completed by a thread when another event is complete."""
        cl = opencl()
        seen = cl.UserEvent(self.context)

        def see() -> None:
            try:
                event.wait()
            finally:  # Later waiters are told of a failure there.
                seen.set_status(cl.command_execution_status.COMPLETE)

        self._seeing.submit(see)
        return seen


def _bytes(array: np.ndarray) -> np.ndarray:
    """An array as bytes, because OpenCL does not know element types of other packages."""
    return array.reshape(-1).view(np.uint8)


@cache
def device(name: str) -> OpenCLDevice:
    """The device `opencl:N`, shared by everything loaded; raises `OptionError` for a missing one."""
    return OpenCLDevice(name)

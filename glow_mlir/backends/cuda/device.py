"""A device of the driver: pooled memory, pinned memory for copies, and one stream as its queue."""

from __future__ import annotations

import ctypes
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from threading import RLock

import numpy as np

from glow_mlir.backends.cuda.driver import Driver, Handle
from glow_mlir.errors import OptionError, OutOfMemoryError
from glow_mlir.runtime.devices import Buffer, Device, DeviceMemory, Event
from glow_mlir.support.dlpack import CUDA

ALIGNMENT = 256
"""The alignment of the driver's memory."""


class CudaBuffer(Buffer):
    """Bytes at a device address, kept alive by their `owner`; freed when the buffer is dropped."""

    def __init__(
        self, address: int, nbytes: int, dropped: Callable[[tuple[int, int]], None], owner: object = None
    ) -> None:
        self.owner = owner
        self.address = address
        self.nbytes = nbytes
        self.drop = weakref.finalize(self, dropped, (address, nbytes))
        """Frees the memory, once."""
        self.drop.atexit = False


def _given_back_by_owner(_: tuple[int, int]) -> None:
    """Do nothing: the memory of the dropped buffer belongs to another library."""


class CudaEvent(Event):
    """
    Completion of a stream's operations; the first waiter then does the remaining work of the host.

    Waiting does not block other users of the device. `written` is the array that the host then writes.
    """

    def __init__(
        self,
        device: CudaDevice,
        handle: Handle,
        finish: Callable[[], None] | None,
        written: np.ndarray | None = None,
    ) -> None:
        self.device = device
        self.written = written
        self._handle = handle
        self._finish = finish
        self._failure: BaseException | None = None
        self._is_finished = False
        self._waiting = 0
        """The number of threads that use the handle."""

    def wait(self) -> None:
        with self.device.used():
            is_finished = self._is_finished
            self._waiting += not is_finished
        if not is_finished:
            try:
                self.device.driver.wait(self._handle)
            except BaseException:
                self._leave()
                raise
            self._leave(is_over=True)
        if self._failure is not None:
            raise self._failure

    @property
    def is_done(self) -> bool:
        with self.device.used():
            if not self._is_finished and self.device.driver.is_done(self._handle):
                self._end()
                self._forget()
            return self._is_finished

    def _leave(self, *, is_over: bool = False) -> None:
        """Stop waiting; after completion, the last waiter releases the handle."""
        with self.device.used():
            self._waiting -= 1
            if is_over and not self._is_finished:
                self._end()
            self._forget()

    def _forget(self) -> None:
        if self._is_finished and not self._waiting:
            self.device.driver.forget(self._handle)

    def _end(self) -> None:
        """Do the remaining work of the host; every waiter receives its error."""
        self._is_finished = True
        finish, self._finish, self.written = self._finish, None, None
        try:
            if finish is not None:
                finish()
        except Exception as error:
            self._failure = error


class Pool:
    """Freed memory, by size, for later allocations of the same size."""

    def __init__(self, allocate: Callable[[int], int]) -> None:
        self._allocate = allocate
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    def take(self, nbytes: int) -> int:
        """Take memory of this size."""
        size = _rounded(nbytes)
        free = self._free[size]
        return free.pop() if free else self._allocate(size)

    def give(self, address: int, nbytes: int) -> None:
        """Return memory."""
        self._free[_rounded(nbytes)].append(address)

    def emptied(self) -> list[int]:
        """All free memory; the pool is empty afterwards."""
        found = [address for group in self._free.values() for address in group]
        self._free.clear()
        return found


def _rounded(nbytes: int) -> int:
    """The allocated size: one of few sizes, at most a quarter more than requested."""
    step = max(ALIGNMENT, 1 << max(0, nbytes.bit_length() - 3))
    return max(step, -(-nbytes // step) * step)


class CudaDevice(Device):
    """
    One device of a driver.

    Freed memory is reused by later allocations: because there is one stream, earlier operations on it come first.
    Arrays are copied through pinned memory, so that callers need not wait for the stream.
    """

    def __init__(self, driver: Driver, number: int, name: str) -> None:
        self.driver = driver
        self.name = name
        self._number = number
        self.properties = driver.properties(number)
        self.memory = DeviceMemory(self.properties.nbytes, ALIGNMENT)
        self._lock = RLock()
        self._context = driver.open(number)
        with self.used():
            self.stream = driver.stream()
        self._pool, self._pinned = Pool(driver.allocate), Pool(driver.allocate_pinned)
        self._copying: list[CudaEvent] = []
        # The garbage collector may drop buffers at any point.
        self._dropped: deque[tuple[int, int]] = deque()

    @contextmanager
    def used(self) -> Generator[None]:
        """Use the driver for this device, exclusively by this thread."""
        with self._lock:
            self.driver.use(self._context)
            yield

    def allocate(self, nbytes: int) -> CudaBuffer:
        with self.used():
            self._collect()
            try:
                address = self._pool.take(nbytes)
            except OutOfMemoryError:  # Free the pooled memory, and retry.
                self._empty()
                address = self._pool.take(nbytes)
            return CudaBuffer(address, nbytes, self._dropped.append)

    def free(self, buffer: Buffer) -> None:
        assert isinstance(buffer, CudaBuffer)
        buffer.drop()

    @property
    def dlpack_device(self) -> tuple[int, int]:
        return self.driver.DLPACK, self._number if self.driver.DLPACK == CUDA else 0

    @property
    def stream_address(self) -> int | None:
        return self.driver.stream_address(self.stream)

    def address(self, buffer: Buffer) -> int:
        assert isinstance(buffer, CudaBuffer)
        return buffer.address

    def shared(self, address: int, nbytes: int, owner: object = None, stream: int | None = None) -> CudaBuffer:
        with self.used():
            found = self.driver.device_at(address) if nbytes else self._number
            if found != self._number:
                reason = f"memory at {address:#x} is that of the device {found} of CUDA, and not of {self.name}"
                raise OptionError(reason, hint="DLPack says on what device a tensor is")
            if stream is not None:
                self.driver.synchronize(stream)
        return CudaBuffer(address, nbytes, _given_back_by_owner, owner)

    def _collect(self) -> None:
        """Return freed memory to the pool."""
        while self._dropped:
            self._pool.give(*self._dropped.popleft())

    def upload(self, buffer: Buffer, source: np.ndarray, after: Sequence[Event] = ()) -> Event:
        assert isinstance(buffer, CudaBuffer)
        self.wait_for(after)
        with self.used():
            host_address = self._pinned_for(source.nbytes)
            for event in self._copying:  # The source may be the target of a pending download.
                if event.written is not None and np.may_share_memory(event.written, source):
                    event.wait()
            ctypes.memmove(host_address, source.ctypes.data, source.nbytes)
            self.driver.upload(buffer.address, host_address, source.nbytes, self.stream)
            return self._copied(host_address, source.nbytes, lambda: None)

    def download(self, buffer: Buffer, target: np.ndarray, after: Sequence[Event] = ()) -> Event:
        assert isinstance(buffer, CudaBuffer)
        return self.download_at(buffer.address, target, after)

    def download_at(
        self,
        address: int,
        target: np.ndarray,
        after: Sequence[Event] = (),
        behind: Callable[[], None] | None = None,
    ) -> CudaEvent:
        """Copy device memory into a contiguous array, and then call `behind` on the host."""
        self.wait_for(after)
        with self.used():
            pinned = self._pinned_for(target.nbytes)
            self.driver.download(pinned, address, target.nbytes, self.stream)

            def finish() -> None:
                ctypes.memmove(target.ctypes.data, pinned, target.nbytes)
                if behind is not None:
                    behind()

            return self._copied(pinned, target.nbytes, finish, target)

    def wait_for(self, events: Sequence[Event]) -> None:
        """
        Wait for events of other devices, whose results pass through the host; earlier operations of the stream need no
        wait.

        Do not hold the device while waiting: other work may need it.
        """
        for event in events:
            if not isinstance(event, CudaEvent) or event.device is not self:
                event.wait()

    def event(self, finish: Callable[[], None] | None = None, written: np.ndarray | None = None) -> CudaEvent:
        """An event for the completion of all operations given to the stream so far."""
        return CudaEvent(self, self.driver.record(self.stream), finish, written)

    def _pinned_for(self, nbytes: int) -> int:
        """A pinned buffer, reusing those of completed copies."""
        self._copying = [event for event in self._copying if not event.is_done]
        return self._pinned.take(nbytes)

    def _copied(
        self, pinned: int, nbytes: int, finish: Callable[[], None], written: np.ndarray | None = None
    ) -> CudaEvent:
        """The event of a copy; its pinned memory is released afterwards."""

        def end() -> None:
            try:
                finish()
            finally:
                self._pinned.give(pinned, nbytes)

        event = self.event(end, written)
        self._copying.append(event)
        return event

    def _empty(self) -> None:
        """Free the unused memory."""
        for address in self._pool.emptied():
            self.driver.free(address)

    def close(self) -> None:
        """Free all unused memory."""
        with self.used():
            self._pinned_for(0)
            self._collect()
            self._empty()
            for address in self._pinned.emptied():
                self.driver.free_pinned(address)

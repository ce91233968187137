"""The host as a device: numpy arrays as buffers, and a thread as the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Any

import numpy as np

from glow_mlir.errors import OutOfMemoryError
from glow_mlir.runtime.aligned_memory import ALIGNMENT, aligned
from glow_mlir.runtime.device_entry import QueueEntry
from glow_mlir.runtime.devices import Buffer, Device, DeviceMemory, Event
from glow_mlir.runtime.executable import EntryPoint
from glow_mlir.runtime.queue_trace import traced
from glow_mlir.support.forks import reset_in_forks


class HostEvent(Event):
    """An event of the queue thread."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def wait(self) -> None:
        self._future.result()

    @property
    def is_done(self) -> bool:
        return self._future.done()


class HostBuffer(Buffer):
    """Bytes in host memory, aligned to 64."""

    def __init__(self, nbytes: int, array: np.ndarray | None = None) -> None:
        self.nbytes = nbytes
        if array is not None:
            self.array = array
            return
        try:
            self.array = aligned(nbytes)
        except MemoryError as error:
            raise OutOfMemoryError(f"no {nbytes:,} bytes for a buffer") from error

    @staticmethod
    def of(array: np.ndarray) -> HostBuffer:
        """A buffer over the bytes of a contiguous array."""
        return HostBuffer(array.nbytes, array.reshape(-1).view(np.uint8))

    def view(self, shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray:
        """The start of the buffer as an array."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self.array[:nbytes].view(dtype).reshape(shape)


class HostDevice(Device):
    """
    A device with host memory, whose queue is a thread. The thread runs in parallel with other computations, and ends
    when the device is no longer referenced.
    """

    memory = DeviceMemory(alignment=ALIGNMENT, is_host=True)

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Start without a thread; a child of `os.fork` has none."""
        self._lock = Lock()
        self._queue: ThreadPoolExecutor | None = None

    def put(self, work: Callable[[], None], after: Sequence[Event] = (), what: str = "transfer") -> Event:
        """Queue work to be done after some events; `what` is its name in traces."""

        def begin() -> None:
            for event in after:
                event.wait()
            with traced(self.name, what):
                work()

        with self._lock:
            if self._queue is None:
                self._queue = ThreadPoolExecutor(1, thread_name_prefix=f"glow-{self.name}")
            # Cancelling the call of this thread also cancels its queued work.
            return HostEvent(self._queue.submit(copy_context().run, begin))

    def allocate(self, nbytes: int) -> HostBuffer:
        return HostBuffer(nbytes)

    def free(self, buffer: Buffer) -> None:
        """Do nothing: an array is freed with its last reference."""

    def upload(self, buffer: Buffer, source: np.ndarray, after: Sequence[Event] = ()) -> Event:
        assert isinstance(buffer, HostBuffer)
        target = buffer.view(source.shape, source.dtype)
        return self.put(lambda: np.copyto(target, source), after)

    def download(self, buffer: Buffer, target: np.ndarray, after: Sequence[Event] = ()) -> Event:
        assert isinstance(buffer, HostBuffer)
        source = buffer.view(target.shape, target.dtype)
        return self.put(lambda: np.copyto(target, source), after)


class HostEntry(QueueEntry):
    """An entry called with arrays by the queue of a host device; its state stays in the entry."""

    def __init__(self, point: EntryPoint, device: HostDevice) -> None:
        self.bindings = point.bindings
        self._point = point
        self._device = device

    def enqueue(self, buffers: Sequence[Buffer], after: Sequence[Event] = ()) -> Event:
        given: dict[str, dict[str, np.ndarray]] = {"input": {}, "output": {}}
        for binding, buffer in zip(self.passed, buffers, strict=True):
            assert isinstance(buffer, HostBuffer)
            given[binding.role][binding.name] = buffer.view(binding.shape, binding.numpy_dtype)
        return self._device.put(lambda: self._call(given["input"], given["output"]), after, self._point.name)

    def _call(self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> None:
        self._point.bound(inputs, outputs)()

"""
Workers: processes that compute calls of a network, with tensors in shared memory.

Constants are mapped from the cache file, once for all processes of the host.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np

from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.reopening import kept_model
from glow_mlir.api.stage_models import PackedModel
from glow_mlir.errors import CancelledError, ExecutionError, GlowError, OptionError, OutOfMemoryError
from glow_mlir.host.replicas import SessionRunner
from glow_mlir.host.shared_regions import Region, Regions
from glow_mlir.runtime.array_layout import Layout, arrays_in, kinds_of, layout_of, write_arrays
from glow_mlir.runtime.device_array import Tensor, on_host
from glow_mlir.support.child_process import ChildProcess, NoProcessError, read_file, read_parts, write_parts
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.forks import reset_in_forks
from glow_mlir.support.portable_errors import portable

SERVER = f"{__name__}:serve"

PATIENCE = 1.0
"""Seconds that an idle worker has to end."""


@dataclass(frozen=True)
class WorkerTask:
    """The task of a worker: a model, and the keywords of its session."""

    model: Any
    keywords: Mapping[str, Any]


@dataclass(frozen=True)
class _Call:
    """Inputs in a region, by number; with the region's size if it is new to the worker."""

    region: int
    size: int
    inputs: Layout
    gone: list[int]
    """Regions that are no longer used."""


@dataclass(frozen=True)
class _Done:
    """Outputs in the call's region; if it is too small, the required size instead."""

    outputs: Layout
    capacity: int = 0
    memory: int = 0
    """The present memory of the session in bytes."""


def pickled_task(task: WorkerTask) -> bytes:
    """A task in pickled form; raises `OptionError` for a model that cannot be pickled."""
    try:
        return pickle.dumps(WorkerTask(kept_model(task.model), task.keywords), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        reason = f"the model cannot be sent to a worker: {error}"
        raise OptionError(reason, hint="give the path of a file") from error


def runner_of(pickled: bytes) -> SessionRunner:
    """The session of a pickled task in the worker process; raises the error of opening it."""
    task: WorkerTask = pickle.loads(pickled)
    if not isinstance(task.model, PackedModel):
        return SessionRunner(ModelSession.of(task.model, **task.keywords))
    folder = TemporaryDirectory(prefix="glow-model-")
    return SessionRunner(ModelSession.of(task.model.unpacked(folder), **task.keywords), folder)


class WorkerEndedError(Exception):
    """A worker has ended during a call."""


class ProcessRunner:
    """A worker process, which computes one call at a time and is restarted after it has ended."""

    is_replaced = True

    def __init__(self, task: WorkerTask) -> None:
        """Raises the error of a worker that cannot start, and `ExecutionError` if the system cannot start processes."""
        self._task = pickled_task(task)
        self._child: ChildProcess | None = None
        self._is_closed = False
        self.reset_after_fork()
        reset_in_forks(self)
        self.memory_bytes = 0
        self._capacity = 0
        """The size of the outputs of calls, in addition to their inputs."""
        self._begin()

    def reset_after_fork(self) -> None:
        """Drop the worker in a child of `os.fork`, because the parent keeps using it."""
        self._regions = Regions()
        self._numbers: dict[Region, int] = {}
        """Region → its number in the worker."""
        self._next = 0
        self._late: list[Region] = []
        """The region of a cancelled call that the worker still computes."""
        self._beginning = Lock()
        child, self._child = self._child, None
        if child is not None:
            child.forget()

    @property
    def pid(self) -> int:
        """The process number of the worker; 0 if there is none."""
        return 0 if self._child is None else self._child.pid

    def _begin(self) -> ChildProcess:
        """Start a worker."""
        try:
            child = ChildProcess(SERVER)
        except NoProcessError as error:
            raise ExecutionError(f"cannot start a worker: {error}") from error
        self._numbers.clear()
        self._late.clear()
        self._regions = Regions()
        try:
            child.send(self._task)
            answer = _received(child)
            if isinstance(answer, Exception):
                raise answer
        except BaseException:
            child.close()
            raise
        self.memory_bytes = answer
        with self._beginning:
            if not self._is_closed:
                self._child = child
                return child
        child.close()
        raise WorkerEndedError("it is closed")

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        """
        The outputs for inputs, in memory written by the worker.

        Raises the errors of the worker, and `WorkerEndedError`. A cancelled call continues in the worker; the next call
        waits for its end.
        """
        child = self._alive()
        arrays = {name: on_host(value) for name, value in inputs.items()}
        try:
            while self._late:
                _received(child)
                self._regions.give_back(self._late.pop())
            return self._asked(child, arrays)
        except (WorkerEndedError, OSError) as error:  # The worker ended, or was interrupted by another thread.
            if self._child is child:
                self._child = None
            raise WorkerEndedError(f"the worker ended with {child.close(PATIENCE)}") from error
        except GlowError:
            raise
        except BaseException:  # The state of the call is unknown.
            self.interrupt()
            raise

    def _alive(self) -> ChildProcess:
        """A live worker, restarted if it has ended since the last call."""
        child = self._child
        if child is not None and child.lives:
            return child
        if child is not None:
            child.close()
        return self._begin()

    def _asked(self, child: ChildProcess, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The answer of the worker, in a region of sufficient capacity."""
        _, end = layout_of(kinds_of(arrays.items()))
        while True:
            region, small = self._region(end + self._capacity)
            layout = write_arrays(region.memory, arrays.items())
            is_new = region not in self._numbers
            if is_new:
                self._numbers[region] = self._next
                self._next += 1
            gone = [self._numbers.pop(other) for other in small]
            child.send(pickle.dumps(_Call(self._numbers[region], region.size if is_new else 0, layout, gone)))
            if is_new:
                child.send_file(region.descriptor)
            try:
                done = _received(child)
            except CancelledError:
                self._late.append(region)
                raise
            if isinstance(done, Exception):
                self._regions.give_back(region)
                raise done
            if not done.capacity:
                self.memory_bytes = done.memory
                return self._regions.arrays(region, done.outputs)
            self._capacity = done.capacity
            self._regions.give_back(region)

    def _region(self, size: int) -> tuple[Region, list[Region]]:
        try:
            return self._regions.taken(size)
        except OSError as error:
            raise OutOfMemoryError(f"cannot allocate {size:,} bytes of memory shared with a worker: {error}") from error

    def interrupt(self) -> None:
        """End a hanging call, together with its worker."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def close(self) -> None:
        """End the worker, and start no more."""
        with self._beginning:
            self._is_closed = True
        self.interrupt()


def _received(child: ChildProcess) -> Any:
    """The answer of a worker, possibly an error; raises `WorkerEndedError`."""
    parts = child.receive(1)
    if not parts:
        raise WorkerEndedError
    return pickle.loads(parts[0])


def serve(channel: socket.socket) -> None:
    """The main loop of a worker: compute calls until the channel closes."""
    try:
        runner = runner_of(read_parts(channel, 1)[0])
        _say(channel, runner.memory_bytes)
    except Exception as error:
        _say(channel, portable(error))
        return
    regions = dict[int, Region]()
    while parts := read_parts(channel, 1):
        call: _Call = pickle.loads(parts[0])
        for number in call.gone:
            del regions[number]
        if call.size:
            regions[call.region] = Region.mapped(read_file(channel), call.size)
        try:
            _say(channel, _computed(runner, regions[call.region], call.inputs))
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            _say(channel, portable(error))


def _computed(runner: SessionRunner, region: Region, inputs: Layout) -> _Done:
    """Compute a call with inputs in a region, and write its outputs there."""
    given = arrays_in(region.memory, inputs)
    outputs = runner.run(given)
    _, end = layout_of(kinds_of(given.items()))
    _, needed = layout_of(kinds_of(outputs.items()), end)
    if needed > region.size:
        return _Done([], needed - end)
    return _Done(write_arrays(region.memory, outputs.items(), end), memory=runner.memory_bytes)


def _say(channel: socket.socket, answer: object) -> None:
    write_parts(channel, pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))

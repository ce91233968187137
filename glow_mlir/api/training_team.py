"""Training by several processes on a host: each computes gradients of its batch parts; all use their sum."""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.shared_training_memory import SharedKinds, SharedMemory
from glow_mlir.api.training_recipe import Recipe
from glow_mlir.errors import ExecutionError, OptionError
from glow_mlir.frontends.builder.module_builder import RANDOM_SEED
from glow_mlir.runtime.cache import bytes_of
from glow_mlir.runtime.memory_file import MemoryFile
from glow_mlir.support import onnx_loader
from glow_mlir.support.activity import warning_to
from glow_mlir.support.child_process import ChildProcess, NoProcessError, read_file, read_parts, write_parts
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.portable_errors import portable
from glow_mlir.training.batches import Arrays
from glow_mlir.training.step import LOSS, gradient_states
from glow_mlir.training.training_module import GRADIENTS, UPDATE, trainable_model
from glow_mlir.xdsl_patches import loader as xdsl_loader

SERVER = f"{__name__}:serve"

COMPUTE, REDUCE, CHANGE, SET = b"compute", b"reduce", b"change", b"set"
"""Requests of the first process: gradients, a share of their sums, an update, and setting state."""

Part = Mapping[str, Any]
"""The inputs for one part of a batch, including its shares of the loss."""


def accumulate(session: ModelSession, parts: Sequence[Part]) -> float:
    """Add up the gradients of batch parts; if one fails, add none. Return their part of the loss."""
    try:
        return sum(float(session.run(part, entry=GRADIENTS)[LOSS]) for part in parts)
    except BaseException:
        session.reset_state(gradient_states(session.loaded.state.arrays.keys()))
        raise


def update(session: ModelSession) -> None:
    """Update the parameters with the accumulated gradients."""
    session.run({}, entry=UPDATE)


@dataclass(frozen=True)
class Task:
    """The start message of another process: its number from 1, the number of processes, and its batch parts."""

    recipe: Recipe
    number: int
    processes: int
    parts: int


class Team:
    """
    The first of several training processes, which has a session of its own, and handles on the others, which have equal
    sessions.

    Gradients lie in shared memory. A step has three phases, and the first process waits for all between them:
    gradients; sums, of which each process computes a share; and the update, which all processes compute alike. If a
    process ends, the first raises an error and ends all.
    """

    def __init__(self, recipe: Recipe, session: ModelSession, processes: int, parts: int) -> None:
        """Raises `OptionError` for a recipe that cannot be sent, and the errors of the other processes."""
        self._session, self._parts = session, parts
        kinds = SharedKinds.of(session, processes, parts)
        self._others: list[ChildProcess] = []
        weakref.finalize(self, _end, self._others)
        try:
            with MemoryFile() as file:
                memory = file.reserve(kinds.size)
                self._shared = kinds.laid_out(memory)
                for number in range(1, processes):
                    self._begin(Task(recipe, number, processes, parts), file.holding(memory))
            self._wait()
        except BaseException:
            self.close()
            raise
        session.loaded.state.attach(self._shared.gradients[0])

    def _begin(self, task: Task, descriptor: int) -> None:
        """Start another process."""
        try:
            message = pickle.dumps(task, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise _untold(error) from error
        try:
            child = ChildProcess(SERVER)
        except NoProcessError as error:
            raise ExecutionError(f"cannot start a process: {error}") from error
        self._others.append(child)
        child.send(message)
        child.send_file(descriptor)

    def step(self, parts: Sequence[Part]) -> float:
        """Perform one training step; return the loss before it. Raises the errors of any process."""
        try:
            return self._step(parts)
        except BaseException:
            self.close()  # The progress of each process is unknown.
            raise

    def _step(self, parts: Sequence[Part]) -> float:
        for number, batches in enumerate(self._shared.batches[1:], 1):
            for place, part in zip(batches, parts[number * self._parts :], strict=False):
                for name, value in part.items():
                    place[name][...] = value
        self._ask(COMPUTE)
        loss = accumulate(self._session, parts[: self._parts])
        loss += sum(self._wait())
        self._ask(REDUCE)
        self._shared.reduce(0)
        self._wait()
        self._ask(CHANGE)
        update(self._session)
        return loss

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The process numbers of the others."""
        return tuple(child.pid for child in self._others)

    def set_state(self, values: Mapping[str, np.ndarray]) -> None:
        """Overwrite state in the other processes."""
        self._ask(SET, pickle.dumps(dict(values), pickle.HIGHEST_PROTOCOL))

    def _ask(self, what: bytes, content: bytes = b"") -> None:
        """Send a request to all others; `_wait` detects processes that have ended."""
        if not self._others:
            raise ExecutionError("the training processes have ended", hint="restart from a checkpoint")
        for child in self._others:
            with suppress(BrokenPipeError, ConnectionResetError):
                child.send(what, content)

    def _wait(self) -> list[float]:
        """The answers of all others; raises their errors."""
        return [self._answer(number, child) for number, child in enumerate(self._others, 1)]

    def _answer(self, number: int, child: ChildProcess) -> float:
        parts = child.receive(1)
        if not parts:
            reason = f"process {number + 1} of {len(self._others) + 1} of the training exited with {child.close(1.0)}"
            raise ExecutionError(reason, hint="restart from a checkpoint")
        answer = pickle.loads(parts[0])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Stop the other processes."""
        _end(self._others)


def _end(children: list[ChildProcess]) -> None:
    """Stop processes that wait for requests."""
    while children:
        children.pop().close()


def serve(channel: socket.socket) -> None:
    """Main loop of another process: answer requests until the first process closes the channel."""
    xdsl_loader.install()
    onnx_loader.install()
    try:
        member = _Member.begun(channel)
        while len(asked := read_parts(channel, 2)) == 2:
            member.answer(*asked)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:
        _say(channel, portable(error))


@dataclass(frozen=True)
class _Member:
    """A process of a team other than the first."""

    channel: socket.socket
    number: int
    session: ModelSession
    shared: SharedMemory

    @staticmethod
    def begun(channel: socket.socket) -> _Member:
        """Receive the task, compile, and report that it is done."""
        task = _task(*read_parts(channel, 1))
        descriptor = read_file(channel)
        with warning_to(lambda _: None):  # The first process reports warnings.
            session = task.recipe.session(trainable_model(task.recipe.source))
        kinds = SharedKinds.of(session, task.processes, task.parts)
        shared = kinds.laid_out(bytes_of(mmap.mmap(descriptor, kinds.size)))
        os.close(descriptor)
        session.loaded.state.attach(shared.gradients[task.number])
        member = _Member(channel, task.number, session, shared)
        member.set_state({RANDOM_SEED: np.array(task.recipe.seed, np.int64)})
        _say(channel, 0.0)
        return member

    def answer(self, what: bytes, content: bytes) -> None:
        """Answer the requests of the first process."""
        if what == COMPUTE:
            _say(self.channel, accumulate(self.session, self.shared.batches[self.number]))
        elif what == REDUCE:
            self.shared.reduce(self.number)
            _say(self.channel, 0.0)
        elif what == CHANGE:
            update(self.session)
        else:
            self.set_state(pickle.loads(content))

    def set_state(self, values: Arrays) -> None:
        """Overwrite state, except random seeds: each process draws its own random numbers."""
        known = self.session.loaded.state.arrays
        own = {name: value for name, value in values.items() if name in known}
        if RANDOM_SEED in own:
            own[RANDOM_SEED] = own[RANDOM_SEED] + np.int64(self.number)
        self.session.set_state(own)


def _task(message: bytes) -> Task:
    """Unpickle the task; raises `OptionError` for classes that this process does not know."""
    try:
        task = pickle.loads(message)
    except Exception as error:
        raise _untold(error) from error
    assert isinstance(task, Task)
    return task


def _untold(error: Exception) -> OptionError:
    reason = f"the training cannot be sent to another process: {error}"
    return OptionError(reason, hint="define losses and optimizers at module level")


def _say(channel: socket.socket, answer: object) -> None:
    write_parts(channel, pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))

"""
Sequences: ordered requests, each computed from the state that the previous one left.

The state is either that of the session, which is swapped when another sequence runs; or it consists of model outputs
that are inputs of the next step, in which case steps of several sequences can be batched.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from glow_mlir.api.session import Session
from glow_mlir.api.session_entry import SessionEntry
from glow_mlir.errors import ExecutionError, InputError, OptionError, QueueFullError
from glow_mlir.host.requests import Outputs, Request
from glow_mlir.runtime.device_array import Tensor
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.forks import reset_in_forks

IDLE = 60.0
"""Seconds without a step after which a sequence is dropped if others need its place."""


@dataclass(frozen=True)
class SequenceStep:
    """A request of the sequence `id`: whether it starts the sequence (or restarts it), and whether it ends it."""

    id: int | str
    is_start: bool = False
    is_end: bool = False


class RunningSequence:
    """A running sequence: its state, and the steps waiting for the current one."""

    def __init__(self, name: int | str) -> None:
        self.name = name
        self.state: dict[str, np.ndarray] | None = None
        """The state after the last step; `None` before the first."""
        self.waiting: deque[Request] = deque()
        self.is_busy = False
        self.is_over = False
        self.has_begun = False
        """Whether a step was computed."""
        self.used = time.perf_counter()


class KeptState(ABC):
    """The storage of the state of sequences, and its exchange with calls."""

    inputs: Collection[str] = ()
    """Inputs that requests must omit, because they are state."""
    outputs: Collection[str] = ()
    """Outputs that requests do not get, because they are state."""

    @abstractmethod
    def completed(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The inputs of a step, including those that are state."""

    @abstractmethod
    def enter(self, sequence: RunningSequence | None, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The inputs of a call with the state of a sequence; raises `InputError` if they do not fit the state."""

    @abstractmethod
    def leave(self, sequence: RunningSequence | None, outputs: Outputs) -> Outputs:
        """Store the state after a call; return the outputs that are not state."""


class SessionState(KeptState):
    """The state of a session, used by one sequence at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own = self._here = RunningSequence("")
        """The sequence of requests that belong to none."""

    def completed(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return inputs

    def enter(self, sequence: RunningSequence | None, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        wanted = sequence or self._own
        if wanted is self._here:
            return inputs
        if not self._here.is_over:
            self._here.state = self._session.get_state()
        if wanted.state is None:
            self._session.reset_state()
        else:
            self._session.set_state(wanted.state)
        self._here = wanted
        return inputs

    def leave(self, sequence: RunningSequence | None, outputs: Outputs) -> Outputs:
        return outputs


class StateOutputs(KeptState):
    """Outputs that are inputs of the next step, by name; zeros for the first step."""

    def __init__(self, pairs: Mapping[str, str], entry: SessionEntry) -> None:
        """Raises `OptionError` for unknown names, outputs that do not fit, and unknown sizes."""
        inputs = {argument.name: argument for argument in entry.inputs}
        outputs = {argument.name: argument for argument in entry.outputs}
        for source, target in pairs.items():
            if source not in outputs or target not in inputs:
                reason = f"state maps output '{source}' to input '{target}', and one of them does not exist"
                raise OptionError(reason, hint=f"outputs are {', '.join(outputs)}, inputs {', '.join(inputs)}")
            given, taken = outputs[source], inputs[target]
            if given.dtype != taken.dtype or given.shape != taken.shape:
                raise OptionError(f"state '{source}' is {given}, but input '{target}' is {taken}")
            if taken.shape is None or any(isinstance(size, str) for size in taken.shape[1:]):
                raise OptionError(f"state '{source}' is {given}, whose size is unknown", hint="dimensions={…}")
        self._pairs = pairs
        self.inputs, self.outputs = tuple(pairs.values()), tuple(pairs)
        self._inputs = {target: inputs[target] for target in pairs.values()}
        self._others = [name for name in inputs if name not in self._inputs]

    def completed(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        shapes = (np.shape(inputs[name]) for name in self._others if name in inputs)
        rows = next((shape[0] for shape in shapes if shape), 1)
        for name in self._inputs:
            if name in inputs:
                raise InputError(f"input '{name}' is state, which the server keeps", hint="leave it out")
        return {**inputs, **{name: _zeros(argument, rows) for name, argument in self._inputs.items()}}

    def enter(self, sequence: RunningSequence | None, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        state = {} if sequence is None or sequence.state is None else sequence.state
        for name, value in state.items():
            if value.shape != inputs[name].shape:
                begun, now = value.shape[:1], inputs[name].shape[:1]
                raise InputError(f"a step has {list(now)} samples, but its sequence has {list(begun)}")
        return {**inputs, **state}

    def leave(self, sequence: RunningSequence | None, outputs: Outputs) -> Outputs:
        if sequence is not None:
            # Copy the state: outputs are views of arrays shared by all requests of the call.
            sequence.state = {target: outputs[source].copy() for source, target in self._pairs.items()}
        return {name: value for name, value in outputs.items() if name not in self._pairs}


def _zeros(argument: Argument, rows: int) -> np.ndarray:
    shape = [size if isinstance(size, int) else rows for size in argument.shape or ()]
    return np.zeros(shape, argument.numpy_dtype)


class Sequences:
    """The sequences of a network, at most `most` at once."""

    def __init__(self, name: str, most: int, bound: int, put: Callable[[Request], None]) -> None:
        """`put` queues a request; `bound` is the maximum number of waiting steps of a sequence."""
        self._bound = bound
        self._name = name
        self._most = most
        self._put = put
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Drop all sequences in a child of `os.fork`, because the parent continues them."""
        self._lock = Lock()
        self._known: dict[int | str, RunningSequence] = {}

    def add(self, request: Request, step: SequenceStep) -> None:
        """
        Compute a step in its turn.

        Raises `InputError` for a sequence that has not begun, and `QueueFullError` for too many.
        """
        with self._lock:
            found = self._known.get(step.id)
            ended: Sequence[Request] = ()
            if step.is_start and found is not None:
                found.is_over = True
                ended, found.waiting = tuple(found.waiting), deque()
            if step.is_start:
                found = self._begun(step.id)
            if found is None:
                reason = f"the sequence {step.id!r} of '{self._name}' has not begun, or was dropped"
                raise InputError(reason, hint="mark the first request of a sequence as its start")
            request.sequence, request.is_end = found, step.is_end
            found.used = request.arrived
            is_first = not found.is_busy
            if is_first:
                found.is_busy = True
            else:
                self._check_capacity(found)
                found.waiting.append(request)
        for other in ended:
            self._fail(other, step.id, "was restarted")
        if is_first:
            try:
                self._put(request)
            except BaseException:
                self.left(found, is_over=not found.has_begun, went_well=False)
                raise

    def _check_capacity(self, found: RunningSequence) -> None:
        """Raise `QueueFullError` if a sequence has too many waiting steps."""
        if len(found.waiting) >= self._bound:
            steps = len(found.waiting)
            raise QueueFullError(f"the sequence {found.name!r} of '{self._name}' already has {steps} waiting steps")

    def _fail(self, request: Request, name: int | str, why: str) -> None:
        reason = f"the sequence {name!r} of '{self._name}' {why}"
        request.fail(ExecutionError(reason, hint="restart it"))

    def _begun(self, name: int | str) -> RunningSequence:
        if name not in self._known and len(self._known) >= self._most:
            idle = [item for item in self._known.values() if not item.is_busy]
            oldest = min(idle, key=lambda item: item.used, default=None)
            if oldest is None or time.perf_counter() - oldest.used < IDLE:
                raise QueueFullError(f"'{self._name}' has {len(self._known)} sequences already, as many as it may")
            oldest.is_over = True
            del self._known[oldest.name]
        found = self._known[name] = RunningSequence(name)
        return found

    def left(self, found: RunningSequence, *, is_over: bool, went_well: bool = True) -> None:
        """A step is finished: run the next one, unless the sequence is over."""
        with self._lock:
            following = found.waiting.popleft() if found.waiting and not is_over else None
            found.is_busy = following is not None
            found.has_begun |= went_well
            failed: Sequence[Request] = ()
            if is_over:
                failed, found.waiting = tuple(found.waiting), deque()
                found.is_over = True
                if self._known.get(found.name) is found:
                    del self._known[found.name]
        if following is not None:
            self._next(following, found)
        for other in failed:
            why = "has ended" if went_well else "has lost its state because one of its steps failed"
            self._fail(other, found.name, why)

    def _next(self, request: Request, found: RunningSequence) -> None:
        """Compute a step that waited for another; a step that has ended meanwhile ends the sequence."""
        try:
            if not request.is_done:
                self._put(request)
                return
        except Exception as error:
            request.fail(error)
        self.left(found, is_over=True, went_well=False)

"""Replicas: what computes the calls of a network, and whether it does."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Protocol

import numpy as np

from glow_mlir.api.session import Session
from glow_mlir.host.requests import Request
from glow_mlir.runtime.device_array import Tensor
from glow_mlir.support.cancellation import Cancellation, current_cancellation
from glow_mlir.support.watchdog import time_limited

RESTS = (0.1, 1.0, 10.0)
"""How many seconds a replica has no calls after it has failed once more than the last time."""


class Runner(Protocol):
    """A worker: a session of this process, or of another."""

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        """The outputs for inputs that are checked."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes of code, constants and activations."""
        ...

    @property
    def is_replaced(self) -> bool:
        """Whether it begins anew by itself behind a failure that is its own."""
        ...

    def interrupt(self) -> None:
        """End a call that hangs, if that can be done."""
        ...

    def close(self) -> None:
        """Free the worker; nobody calls it any more."""
        ...


class SessionRunner:
    """A session of this process, of whose entries the first is called."""

    is_replaced = False

    def __init__(self, session: Session, files: object = None) -> None:
        """`files` holds the files that the session may read again, and is removed with it."""
        self.session = session
        self._files = files
        self.run = session.first.run_checked if not session.time_limit else self._run_limited

    def _run_limited(self, inputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        call = Cancellation(current_cancellation())
        with time_limited(call, self.session.time_limit, "call", "time_limit"):
            return self.session.first.run_checked(inputs)

    @property
    def memory_bytes(self) -> int:
        """Bytes of code, constants and activations of one thread."""
        return sum(self.session.loaded.memory.values())

    def interrupt(self) -> None:
        """A thread cannot be ended."""

    def close(self) -> None:
        """The session goes with whoever has it last."""


class Replica:
    """A runner, and how it fares: after a failure that is its own it rests, longer each time, until a call succeeds."""

    def __init__(self, name: str, runner: Runner) -> None:
        self.name = name
        self.runner = runner
        self.failures = 0
        """How many calls have failed one after the other that somebody else might have computed."""
        self.rests_until = 0.0

    def fared(self, *, well: bool) -> None:
        """Note how a call went."""
        if well:
            self.failures = 0
            return
        self.failures += 1
        self.rests_until = time.perf_counter() + RESTS[min(self.failures, len(RESTS)) - 1]

    @property
    def rest(self) -> float:
        """How many seconds it still has no calls; 0 where it has."""
        return max(0.0, self.rests_until - time.perf_counter()) if self.failures else 0.0


class Slot:
    """A place for one call of a replica at a time."""

    __slots__ = ("__weakref__", "is_lost", "replica", "requests", "thread")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.requests: Sequence[Request] = ()
        """The requests that the thread computes."""
        self.thread: Thread | None = None
        """The thread that computes them."""
        self.is_lost = False
        """Whether a call hangs, and another slot has taken its place."""

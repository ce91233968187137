"""Replicas: the workers of a network's calls, and their health."""

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
"""The pauses of a replica in seconds after consecutive failures."""


class Runner(Protocol):
    """A worker: a session in this process, or in another."""

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        """The outputs for checked inputs."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes of code, constants and activations."""
        ...

    @property
    def is_replaced(self) -> bool:
        """Whether it restarts by itself after a failure of its own."""
        ...

    def interrupt(self) -> None:
        """End a hanging call, if possible."""
        ...

    def close(self) -> None:
        """Release the worker, which is not called any more."""
        ...


class SessionRunner:
    """A session in this process; its first entry is called."""

    is_replaced = False

    def __init__(self, session: Session, files: object = None) -> None:
        """`files` keeps the files alive that the session may read again."""
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
        """Do nothing: a thread cannot be killed."""

    def close(self) -> None:
        """Do nothing: the session is freed with its last reference."""


class Replica:
    """A runner with its health: after failures of its own it pauses, longer each time, until a call succeeds."""

    def __init__(self, name: str, runner: Runner) -> None:
        self.name = name
        self.runner = runner
        self.failures = 0
        """The number of consecutive failures not caused by inputs."""
        self.rests_until = 0.0

    def fared(self, *, well: bool) -> None:
        """Record the result of a call."""
        if well:
            self.failures = 0
            return
        self.failures += 1
        self.rests_until = time.perf_counter() + RESTS[min(self.failures, len(RESTS)) - 1]

    @property
    def rest(self) -> float:
        """Seconds that the pause still lasts; 0 if there is none."""
        return max(0.0, self.rests_until - time.perf_counter()) if self.failures else 0.0


class Slot:
    """A slot for one call of a replica at a time."""

    __slots__ = ("__weakref__", "is_lost", "replica", "requests", "thread")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.requests: Sequence[Request] = ()
        """The requests being computed by the thread."""
        self.thread: Thread | None = None
        """The thread that computes them."""
        self.is_lost = False
        """Whether a call hangs, and another slot has replaced this one."""

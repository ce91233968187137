"""Replicas as Ray actors on any machine of a cluster: Ray starts them, transfers tensors, and reports their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from glow_mlir.host.processes import WorkerEndedError, WorkerTask, pickled_task, runner_of
from glow_mlir.host.replicas import SessionRunner
from glow_mlir.runtime.device_array import Tensor, on_host
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.optional_packages import imported
from glow_mlir.support.portable_errors import portable

LOOK = 0.05
"""Seconds between checks for cancellation while waiting for an answer."""


def ray() -> Any:
    """The module `ray`, connected to a cluster; raises `OptionError` if it is not installed."""
    found = imported("ray", "distributed", "replicas on a cluster need Ray")
    if not found.is_initialized():
        # The cluster of RAY_ADDRESS, or a new one on this machine.
        found.init(log_to_driver=False, include_dashboard=False, logging_level="error")
    return found


class SessionActor:
    """A session in a Ray process: errors are returned as results, because Ray would wrap exceptions."""

    def __init__(self, task: bytes) -> None:
        self._task = task
        self._runner: SessionRunner | None = None

    def begin(self) -> int | Exception:
        """Open the session; return its memory in bytes, or the error."""
        try:
            self._runner = runner_of(self._task)
            return self._runner.memory_bytes
        except Exception as error:
            return portable(error)

    def compute(self, inputs: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], int] | Exception:
        """The outputs for inputs, and the memory of the session in bytes; or an error."""
        assert self._runner is not None
        try:
            return self._runner.run(inputs), self._runner.memory_bytes
        except Exception as error:
            return portable(error)


class RayRunner:
    """A Ray actor that computes calls, and is restarted after it has ended."""

    is_replaced = True

    def __init__(self, task: WorkerTask) -> None:
        """The actor reads the model: a file must exist there under the same path."""
        self._task = pickled_task(task)
        self._ray = ray()
        self._actor: Any = None
        self.memory_bytes = 0
        self._begin()

    def _begin(self) -> Any:
        """Start an actor; raises the errors of opening the session."""
        actor = self._ray.remote(num_cpus=1)(SessionActor).remote(self._task)
        self.memory_bytes = self._answer(actor.begin.remote())
        self._actor = actor
        return actor

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        """The outputs for inputs, in new arrays; raises the error of the actor, and `WorkerEndedError`."""
        actor = self._actor or self._begin()
        try:
            found, self.memory_bytes = self._answer(
                actor.compute.remote({name: on_host(value) for name, value in inputs.items()})
            )
        except WorkerEndedError:
            if self._actor is actor:
                self._actor = None
            raise
        # Arrays from Ray are in read-only shared memory.
        return {name: value.copy() for name, value in found.items()}

    def _answer(self, reference: Any) -> Any:
        """The answer of an actor, unless the call is cancelled first; raises an answer that is an error."""
        errors = self._ray.exceptions
        try:
            while not self._ray.wait([reference], timeout=LOOK)[0]:
                check_cancellation()
            answer = self._ray.get(reference)
        except (errors.RayActorError, errors.NodeDiedError, errors.WorkerCrashedError) as error:
            raise WorkerEndedError("the Ray actor has ended") from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def interrupt(self) -> None:
        """End a hanging call, together with the actor."""
        self.close()

    def close(self) -> None:
        """End the actor."""
        actor, self._actor = self._actor, None
        if actor is not None and self._ray.is_initialized():
            self._ray.kill(actor)

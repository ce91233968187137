"""Requests: what somebody wants to have computed, when it is there at the latest, and who waits for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from glow_mlir.errors import CancelledError, TimeLimitError
from glow_mlir.runtime.device_array import Tensor
from glow_mlir.support.cancellation import Cancellation

if TYPE_CHECKING:
    from glow_mlir.host.sequences import RunningSequence

Outputs = dict[str, np.ndarray]


@contextmanager
def reporting_callback_failures() -> Generator[None]:
    """Log errors of callbacks, so that they do not end the thread, which has other answers to deliver."""
    try:
        yield
    except BaseException:
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


class Answer(Future[Outputs]):
    """The outputs of a request, when they are there; `cancel` takes effect in the queue and while it is computed."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request: Request | None = request
        """The request, until it is answered."""

    def cancel(self) -> bool:
        """End the request, unless it is done; its result then raises `CancelledError` of this package."""
        request = self.request
        return request is not None and request.cancel()


class Request:
    """
    A call that somebody waits for: its checked inputs, and the outputs that are wanted, all where it says none.

    Of those with lower `priority` numbers all come first, of equal ones who came first. It has one outcome, whoever
    comes first with it: the answer, an error, its deadline, or who cancels it.
    """

    __slots__ = (
        "__weakref__",
        "_open",
        "answer",
        "arrived",
        "attempts",
        "cancellation",
        "deadline",
        "inputs",
        "is_end",
        "is_queued",
        "key",
        "name",
        "number",
        "priority",
        "rows",
        "sequence",
        "settled",
        "wanted",
    )

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Tensor],
        wanted: Sequence[str] | None,
        priority: int,
        timeout: float | None,
        settled: Callable[[Request, str], None],
    ) -> None:
        """`settled` is told when it ends without an answer, and how; it is called once, by whoever ends it."""
        self.name = name
        self.inputs: Mapping[str, Tensor] = inputs
        self.wanted = wanted
        self.priority = priority
        self.number = 0
        self.arrived = time.perf_counter()
        self.is_queued = False
        """Whether it is in the queue."""
        self.deadline = None if timeout is None else self.arrived + timeout
        self.rows = 1
        self.key: object = None
        """Only requests with equal keys are computed in one call."""
        self.attempts = 0
        self.sequence: RunningSequence | None = None
        """The sequence of which the request is a step."""
        self.is_end = False
        """Whether it is the last step of that."""
        self.cancellation: Cancellation | None = None
        self.settled = settled
        self._open = [True]
        self.answer = Answer(self)

    def __lt__(self, other: Request) -> bool:
        return (self.priority, self.number) < (other.priority, other.number)

    @property
    def is_done(self) -> bool:
        """Whether somebody has brought its outcome, or is about to."""
        return not self._open

    def claim(self) -> bool:
        """Be the one who brings its outcome; false where another one does."""
        try:
            self._open.pop()  # Which one thread can do.
        except IndexError:
            return False
        return True

    def succeed(self, outputs: Outputs) -> None:
        """Answer it, by who has claimed it."""
        self._release()
        with reporting_callback_failures():
            self.answer.set_result(outputs)

    def fail(self, error: Exception, outcome: str = "failed") -> bool:
        """Let it end with an error; false where it has another outcome already."""
        if not self.claim():
            return False
        if self.cancellation is not None and isinstance(error, CancelledError):
            self.cancellation.cancel(error)
        self.settled(self, outcome)
        self._release()
        with reporting_callback_failures():
            self.answer.set_exception(error)
        return True

    def cancel(self) -> bool:
        """End it on behalf of who wanted it; false where it is done."""
        return self.fail(CancelledError(f"a request of '{self.name}' was cancelled"), "cancelled")

    def expire(self) -> bool:
        """End it, since its time is up; false where it is done."""
        seconds = 0.0 if self.deadline is None else self.deadline - self.arrived
        reason = f"a request of '{self.name}' timed out after {seconds:g} seconds"
        return self.fail(TimeLimitError(reason, hint="raise the timeout, or reduce the load"), "expired")

    def _release(self) -> None:
        """Keep nothing that only an answer needs: whoever has that keeps the request no more."""
        self.answer.request = None
        self.inputs = {}

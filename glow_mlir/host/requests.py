"""Requests: inputs, wanted outputs, deadline, and the future of the caller."""

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
    """Log errors of callbacks, so that they do not end a thread with other answers to deliver."""
    try:
        yield
    except BaseException:
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


class Answer(Future[Outputs]):
    """The future outputs of a request; `cancel` works both in the queue and during computation."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request: Request | None = request
        """The request, until it is answered."""

    def cancel(self) -> bool:
        """Cancel the request, unless it is done; its result then raises this package's `CancelledError`."""
        request = self.request
        return request is not None and request.cancel()


class Request:
    """
    A call that a caller waits for: its checked inputs, and the wanted outputs, by default all.

    Requests with lower `priority` numbers come first, then earlier ones. A request has exactly one outcome, whichever
    comes first: the answer, an error, its deadline, or cancellation.
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
        """`settled` is called once, with the outcome, when the request ends without an answer."""
        self.name = name
        self.inputs: Mapping[str, Tensor] = inputs
        self.wanted = wanted
        self.priority = priority
        self.number = 0
        self.arrived = time.perf_counter()
        self.is_queued = False
        """Whether the request is in the queue."""
        self.deadline = None if timeout is None else self.arrived + timeout
        self.rows = 1
        self.key: object = None
        """Only requests with equal keys are computed in one call."""
        self.attempts = 0
        self.sequence: RunningSequence | None = None
        """The sequence that the request is a step of."""
        self.is_end = False
        """Whether it is the last step of the sequence."""
        self.cancellation: Cancellation | None = None
        self.settled = settled
        self._open = [True]
        self.answer = Answer(self)

    def __lt__(self, other: Request) -> bool:
        return (self.priority, self.number) < (other.priority, other.number)

    @property
    def is_done(self) -> bool:
        """Whether the outcome is decided, or about to be."""
        return not self._open

    def claim(self) -> bool:
        """Claim the right to decide the outcome; false if it is already claimed."""
        try:
            self._open.pop()  # Only one thread succeeds.
        except IndexError:
            return False
        return True

    def succeed(self, outputs: Outputs) -> None:
        """Answer the request, after claiming it."""
        self._release()
        with reporting_callback_failures():
            self.answer.set_result(outputs)

    def fail(self, error: Exception, outcome: str = "failed") -> bool:
        """End the request with an error; false if it has another outcome."""
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
        """Cancel the request for the caller; false if it is done."""
        return self.fail(CancelledError(f"a request of '{self.name}' was cancelled"), "cancelled")

    def expire(self) -> bool:
        """End the request at its deadline; false if it is done."""
        seconds = 0.0 if self.deadline is None else self.deadline - self.arrived
        reason = f"a request of '{self.name}' timed out after {seconds:g} seconds"
        return self.fail(TimeLimitError(reason, hint="raise the timeout, or reduce the load"), "expired")

    def _release(self) -> None:
        """Drop everything not needed for an answer, because the answer refers to the request."""
        self.answer.request = None
        self.inputs = {}

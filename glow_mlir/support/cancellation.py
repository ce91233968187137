"""
Cancellation of a call or compilation: by request, by time limit, or by Ctrl-C.

Running work checks its cancellation where that is cheap: loops at the start of each iteration (one load in machine
code), compilations at each operator.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import Lock
from types import TracebackType

from glow_mlir.errors import CancelledError

_LOOK = 0.02
"""Seconds between checks for cancellation while a call waits for another."""


class Cancellation:
    """The cancellation of one call; `word`, which machine code reads, becomes nonzero."""

    __slots__ = ("_around", "_error", "word")

    def __init__(self, around: Cancellation | None = None) -> None:
        """`around` is the cancellation of the enclosing work, which `check` checks as well."""
        self.word = ctypes.c_int32(0)
        self._error: CancelledError | None = None
        self._around = around

    @property
    def address(self) -> int:
        """The address of the word."""
        return ctypes.addressof(self.word)

    def cancel(self, error: CancelledError) -> None:
        """Cancel the call with an error; the first error counts. Any thread may call this."""
        if self._error is None:
            self._error = error
        self.word.value = 1

    def check(self) -> None:
        """Raise the error if the call or the enclosing work is cancelled."""
        if self._around is not None:
            self._around.check()
        if self._error is not None:
            raise self._error


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def current_cancellation() -> Cancellation | None:
    """The cancellation of the present thread or task; `None` if it has none."""
    return _CURRENT.get()


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Generator[None]:
    """Make the body of the `with` statement cancellable by `cancellation`."""
    token = _CURRENT.set(cancellation)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def check_cancellation() -> None:
    """Raise `CancelledError` if the call of this thread or task is cancelled."""
    if (cancellation := _CURRENT.get()) is not None:
        cancellation.check()


def held(lock: Lock) -> AbstractContextManager[object]:
    """
    Hold a lock inside the `with` statement, for locks that calls hold for a long time.

    Raises `CancelledError` if the call of this thread or task is cancelled while waiting.
    """
    return lock if (call := _CURRENT.get()) is None else _Held(lock, call)


class _Held:
    """A lock whose waiters can be cancelled."""

    __slots__ = ("_call", "_lock")

    def __init__(self, lock: Lock, call: Cancellation) -> None:
        self._lock = lock
        self._call = call

    def __enter__(self) -> None:
        while not self._lock.acquire(timeout=_LOOK):
            self._call.check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()

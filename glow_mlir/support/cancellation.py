"""
The end of a call or compilation before it is done: it was told to end, its time is up, or Ctrl-C interrupted it.

Whoever computes looks at the cancellation of its call where that costs nothing: loops at the beginning of each trip,
in machine code by one load; compilations at each operator.
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
"""How many seconds a call that waits for another one lets pass before it looks whether it is to end."""


class Cancellation:
    """Whether one call is to end before it is done; `word`, which machine code reads, is not 0 from then on."""

    __slots__ = ("_around", "_error", "word")

    def __init__(self, around: Cancellation | None = None) -> None:
        """`around` ends what it is part of, where that looks with `check`."""
        self.word = ctypes.c_int32(0)
        self._error: CancelledError | None = None
        self._around = around

    @property
    def address(self) -> int:
        """The address of the word."""
        return ctypes.addressof(self.word)

    def cancel(self, error: CancelledError) -> None:
        """Let the call end with an error; of several, with the first. Any thread may ask for that."""
        if self._error is None:
            self._error = error
        self.word.value = 1

    def check(self) -> None:
        """Raise the error where the call, or what it is part of, is to end."""
        if self._around is not None:
            self._around.check()
        if self._error is not None:
            raise self._error


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def current_cancellation() -> Cancellation | None:
    """What ends the call that this thread or task is in; `None` where nobody has said that anything may."""
    return _CURRENT.get()


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Generator[None]:
    """Let what is computed inside the `with` statement end as `cancellation` says."""
    token = _CURRENT.set(cancellation)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def check_cancellation() -> None:
    """Raise `CancelledError` where the call that this thread or task is in is to end."""
    if (cancellation := _CURRENT.get()) is not None:
        cancellation.check()


def held(lock: Lock) -> AbstractContextManager[object]:
    """
    Hold a lock inside the `with` statement, for which calls may wait as long as another one takes.

    Raises `CancelledError` where the call that this thread or task is in is to end before it has the lock.
    """
    return lock if (call := _CURRENT.get()) is None else _Held(lock, call)


class _Held:
    """A lock for which a call waits until it is to end."""

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

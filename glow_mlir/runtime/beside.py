"""
Work beside the calls of a session, in a thread of its own.

It ends soon where the process does, or nobody is left who wants its result. Where the process has one core, it goes on
while no call runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from types import TracebackType

from glow_mlir.errors import CancelledError
from glow_mlir.runtime.pool import usable_cores
from glow_mlir.support.cancellation import Cancellation, cancelled_by

THREAD = "glow-beside"
"""The name of the threads."""

_QUIET = 0.05
"""How many seconds no call has run when there seem to be none for a while."""

_LOOK = 0.01
"""How many seconds work that gives way to calls lets pass before it looks at them again."""


class Calls:
    """How many calls of a session run, and how many wait for a compilation: what work beside them gives way to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._waiting = 0
        self._end = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._running -= 1
            self._end = time.monotonic()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Let work beside the calls go on inside the `with` statement, in which one waits for its end."""
        with self._lock:
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    @property
    def are_many(self) -> bool:
        """Whether one runs or has just run, and none waits."""
        return not self._waiting and (self._running > 0 or time.monotonic() - self._end < _QUIET)


class BesideCalls(Cancellation):
    """Ends work that is done beside calls; and lets it wait as long as these need the only core."""

    __slots__ = ("_calls", "_has_core", "_is_wanted")

    def __init__(self, is_wanted: Callable[[], bool], calls: Calls) -> None:
        super().__init__()
        self._is_wanted = is_wanted
        self._calls = calls
        self._has_core = usable_cores() > 1

    def check(self) -> None:
        self._end()
        while not self._has_core and self._calls.are_many:
            time.sleep(_LOOK)
            self._end()

    def _end(self) -> None:
        # The main thread has ended where the process waits for the others.
        if not threading.main_thread().is_alive() or not self._is_wanted():
            self.cancel(CancelledError("nobody waits for the compilation any more"))
        super().check()


def start(work: Callable[[], None], is_wanted: Callable[[], bool], calls: Calls) -> bool:
    """
    Begin work beside calls, which `check_cancellation` ends, and which tells whoever watches.

    Gives false where the process ends, which starts no threads any more and needs none.
    """

    def watched() -> None:
        with suppress(CancelledError), cancelled_by(BesideCalls(is_wanted, calls)):
            work()

    try:
        threading.Thread(target=copy_context().run, args=(watched,), name=THREAD).start()
    except RuntimeError:
        return False
    return True

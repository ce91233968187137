"""Asynchronous calls: threads of the process that run them, at most one per core."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np

from glow_mlir.errors import GlowError, InputError
from glow_mlir.runtime.cores import usable_cores
from glow_mlir.support.forks import reset_in_forks

Callback = Callable[[Sequence[np.ndarray], Any, str], None]
"""A callback: takes the outputs, the user's data, and the error text, empty for none."""


class _Threads:
    """The threads, started by the first call; the process waits for running calls before it exits."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Start over in a child process, which does not inherit threads."""
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], None]) -> None:
        """Let a thread do the work, in the context of the caller."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(usable_cores(), thread_name_prefix="glow-async")
            self._pool.submit(copy_context().run, work)


_THREADS = reset_in_forks(_Threads())


def call_in_background(call: Callable[[], Sequence[np.ndarray]], callback: Callback, user_data: Any) -> None:
    """
    Make a call in another thread, and pass its results to `callback` there.

    A user error is passed as text; exceptions of the callback go to `threading.excepthook`, as in any thread. Raises
    `InputError` unless the callback is callable.
    """
    if not callable(callback):
        reason = f"a callback cannot be of the type '{type(callback).__name__}'"
        raise InputError(reason, hint="a function of outputs, user_data and the text of an error")

    def work() -> None:
        results: Sequence[np.ndarray] = []
        try:
            results, error = call(), ""
        except GlowError as failure:
            error = str(failure)
        except BaseException as failure:
            error = f"{type(failure).__name__}: {failure}"
        try:
            callback(results, user_data, error)
        except BaseException:
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    _THREADS.submit(work)

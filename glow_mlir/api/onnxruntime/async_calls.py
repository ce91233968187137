"""Calls beside the caller: threads of the process that run them, one for each core at most."""

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
"""A callback: it takes the outputs, the user's data, and the text of an error, which is empty without one."""


class _Threads:
    """The threads, which start with the first call; the process waits for calls before it ends."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Begin anew in a child process: the threads stayed with its parent."""
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
    Make a call in another thread, and hand what it gives to `callback` there.

    A mistake of the user's is a text; what the callback raises goes to `threading.excepthook`, as from any thread.
    Raises `InputError` for what is no callback.
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

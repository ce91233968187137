"""Timers: a thread that calls functions at given times, for example to expire requests."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from glow_mlir.host.requests import reporting_callback_failures
from glow_mlir.support.forks import reset_in_forks

_FEW = 256
"""The number of entries that are kept without removing obsolete ones."""


class Timetable:
    """Calls at times of `time.perf_counter`, made by one thread, which starts with the first and should not block."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._order = itertools.count()
        self._is_closed = False
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Drop all timers and the thread in a child of `os.fork`: the parent keeps its own."""
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, weakref.ref[Any], Callable[[Any], object]]] = []
        self._most = _FEW
        """The number of entries above which obsolete ones are removed."""
        self._thread: threading.Thread | None = None

    def at(self, moment: float, owner: object, call: Callable[[Any], object]) -> None:
        """Call a function with an object at a time, or at once if it is past, provided that the object still exists."""
        entry = moment, next(self._order), weakref.ref(owner), call
        with self._changed:
            if self._is_closed:
                return
            if len(self._due) > self._most:
                self._due = [item for item in self._due if item[2]() is not None]
                heapq.heapify(self._due)
                self._most = 2 * len(self._due) + _FEW
            heapq.heappush(self._due, entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
            elif self._due[0] is entry:
                self._changed.notify()

    def _serve(self) -> None:
        while True:
            with self._changed:
                if self._is_closed:
                    return
                wait = self._due[0][0] - time.perf_counter() if self._due else None
                if wait is None or wait > 0:
                    self._changed.wait(None if wait is None else min(wait, threading.TIMEOUT_MAX))
                    continue
                _, _, owner, call = heapq.heappop(self._due)
            if (found := owner()) is not None:
                with reporting_callback_failures():
                    call(found)
            del found

    def close(self) -> None:
        """Make no more calls, and wait for the current one."""
        with self._changed:
            self._is_closed = True
            self._due.clear()
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

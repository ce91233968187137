"""Python's collector of cyclic garbage, and how the compiler keeps it away."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

from glow_mlir.support.forks import reset_in_forks

DELAY = 0.25
"""Seconds behind a compilation in which first calls go undisturbed."""

YOUNG = 1
"""The oldest generation that a compilation leaves garbage in: the collector is away while it runs."""


@contextmanager
def without_collector() -> Generator[None]:
    """
    Pause the collector of cyclic garbage; also a decorator.

    IR is a large graph of objects that nearly all live until a compilation ends. The collector walks them again and
    again as ops are built, and finds next to nothing. One that is off already stays off.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    _GARBAGE.paused_by = threading.get_ident()
    try:
        yield
    finally:
        _GARBAGE.paused_by = 0
        gc.enable()


class _Garbage:
    """The garbage of compilations: all of it is young, so that two of three generations are collected."""

    def __init__(self) -> None:
        self.paused_by = 0
        """The thread that is inside `without_collector`; 0 where none is."""
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Know of no compilation: in a child of `os.fork`, other threads are gone, and with them what they paused."""
        if self.paused_by not in (0, threading.get_ident()):
            self.paused_by = 0
            gc.enable()
        self._lock = threading.Lock()
        self._running = 0
        self._begun = 0
        """How many compilations have begun."""

    def begin(self) -> None:
        """Note that a compilation begins."""
        with self._lock:
            self._running += 1
            self._begun += 1

    def end(self) -> None:
        """Note that a compilation has ended, and collect a little later."""
        with self._lock:
            self._running -= 1
            if self._running or not (gc.isenabled() or self.paused_by):
                return
            timer = threading.Timer(DELAY, self._collect, (self._begun,))
            timer.name, timer.daemon = "glow-garbage", True
            with suppress(RuntimeError):  # The process ends, or has no thread left.
                timer.start()

    def _collect(self, begun: int) -> None:
        """Collect behind the last compilation."""
        with self._lock:
            if not self._running and self._begun == begun and gc.isenabled():
                gc.collect(YOUNG)


_GARBAGE = reset_in_forks(_Garbage())


@contextmanager
def collected_soon() -> Generator[None]:
    """
    Collect the cyclic garbage that a compilation leaves soon behind it, in a thread; also a decorator.

    Otherwise a later call would wait for that. The collector does not traverse older objects, which may be many. In a
    process without a collector, nothing happens.
    """
    _GARBAGE.begin()
    try:
        yield
    finally:
        _GARBAGE.end()

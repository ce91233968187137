"""Control of Python's cyclic garbage collector during compilations."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

from glow_mlir.support.forks import reset_in_forks

DELAY = 0.25
"""Seconds after a compilation before garbage is collected, so that first calls are not disturbed."""

YOUNG = 1
"""The oldest generation with garbage of a compilation, because the collector is off during it."""


@contextmanager
def without_collector() -> Generator[None]:
    """
    Pause the cyclic garbage collector; also a decorator.

    IR is a large graph of objects that nearly all live until a compilation ends. The collector would traverse them
    repeatedly as ops are created, and find almost nothing. A collector that is already off stays off.
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
    """The garbage of compilations: all of it is young, so only two of the three generations are collected."""

    def __init__(self) -> None:
        self.paused_by = 0
        """The thread inside `without_collector`; 0 if there is none."""
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Forget all compilations: a child of `os.fork` does not inherit other threads or their pauses."""
        if self.paused_by not in (0, threading.get_ident()):
            self.paused_by = 0
            gc.enable()
        self._lock = threading.Lock()
        self._running = 0
        self._begun = 0
        """The number of started compilations."""

    def begin(self) -> None:
        """A compilation begins."""
        with self._lock:
            self._running += 1
            self._begun += 1

    def end(self) -> None:
        """A compilation has ended: collect a little later."""
        with self._lock:
            self._running -= 1
            if self._running or not (gc.isenabled() or self.paused_by):
                return
            timer = threading.Timer(DELAY, self._collect, (self._begun,))
            timer.name, timer.daemon = "glow-garbage", True
            with suppress(RuntimeError):  # At exit, or without a free thread.
                timer.start()

    def _collect(self, begun: int) -> None:
        """Collect, unless another compilation has begun."""
        with self._lock:
            if not self._running and self._begun == begun and gc.isenabled():
                gc.collect(YOUNG)


_GARBAGE = reset_in_forks(_Garbage())


@contextmanager
def collected_soon() -> Generator[None]:
    """
    Collect the cyclic garbage of a compilation soon after it, in a thread; also a decorator.

    Otherwise a later call would be delayed by the collection. Older objects, which may be many, are not traversed. If
    the collector is disabled, nothing happens.
    """
    _GARBAGE.begin()
    try:
        yield
    finally:
        _GARBAGE.end()

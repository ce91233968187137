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

MARGIN = 100_000
"""
How many more objects there may be until then before the collector runs by itself; whether it is on is not changed.

Whoever takes the raised threshold for the usual one, and sets it again later, still has a collector that runs.
"""


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
        self._usual = gc.get_threshold()
        """The thresholds before the first one is raised."""
        self._raised = 0
        """The raised threshold; 0 if none is raised."""
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Forget all compilations: a child of `os.fork` does not inherit other threads or their pauses."""
        if self.paused_by not in (0, threading.get_ident()):
            self.paused_by = 0
            gc.enable()
        self._restore_threshold()
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
            if self._running:
                return
            if not (gc.isenabled() or self.paused_by):
                self._restore_threshold()
                return
            with suppress(RuntimeError):  # At exit, or without a free thread.
                self._collect_later()
                # Otherwise the collector would begin at once, as soon as it is on again.
                if (usual := gc.get_threshold())[0] != self._raised:
                    self._usual = usual
                self._raised = gc.get_count()[0] + MARGIN
                gc.set_threshold(self._raised, *self._usual[1:])

    def _collect_later(self) -> None:
        """Collect after a while; raises `RuntimeError` where no thread can be started."""
        timer = threading.Timer(DELAY, self._collect, (self._begun,))
        timer.name, timer.daemon = "glow-garbage", True
        timer.start()

    def _collect(self, begun: int) -> None:
        """Collect, unless another compilation has begun."""
        with self._lock:
            if self._running or self._begun != begun:
                return
            if self.paused_by:  # The artifact is still being stored.
                with suppress(RuntimeError):
                    self._collect_later()
                    return
            if gc.isenabled():
                gc.collect(YOUNG)
            self._restore_threshold()

    def _restore_threshold(self) -> None:
        """Let the collector run by itself again, unless others have set another threshold meanwhile."""
        if self._raised and gc.get_threshold()[0] == self._raised:
            gc.set_threshold(*self._usual)
        self._raised = 0


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

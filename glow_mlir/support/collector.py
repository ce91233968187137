"""Python's collector of cyclic garbage, and how the compiler keeps it away."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

from glow_mlir.support.forks import anew_in_forks

DELAY = 0.25
"""Seconds behind a compilation in which first calls go undisturbed."""


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
    """The garbage of compilations, and what was there before: set aside (`gc.freeze`) until that is collected."""

    def __init__(self) -> None:
        self.paused_by = 0
        """The thread that is inside `without_collector`; 0 where none is."""
        self._frozen = 0
        """How many objects are set aside; 0 where none are, or somebody else has done that, or wants no collector."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Know of no compilation: in a child of `os.fork`, other threads are gone, and with them what they paused."""
        if self.paused_by not in (0, threading.get_ident()):
            self.paused_by = 0
            gc.enable()
        self._unfreeze()
        self._lock = threading.Lock()
        self._running = 0
        self._begun = 0
        """How many compilations have begun."""

    def _unfreeze(self) -> None:
        """Give back what is set aside, unless somebody else has set objects aside since."""
        if gc.get_freeze_count() <= self._frozen:
            gc.unfreeze()
        self._frozen = 0

    def begin(self) -> None:
        """Note that a compilation begins."""
        with self._lock:
            self._running += 1
            self._begun += 1
            if not self._frozen and not gc.get_freeze_count() and (gc.isenabled() or self.paused_by):
                gc.freeze()
                self._frozen = gc.get_freeze_count()

    def end(self) -> None:
        """Note that a compilation has ended, and collect a little later."""
        with self._lock:
            self._running -= 1
            if self._frozen and not self._running:
                timer = threading.Timer(DELAY, self._collect, (self._begun,))
                timer.name, timer.daemon = "glow-garbage", True
                try:
                    timer.start()
                except RuntimeError:  # The process ends, or has no thread left.
                    self._unfreeze()

    def _collect(self, begun: int) -> None:
        """Collect behind the last compilation, unless somebody else has set objects aside meanwhile."""
        with self._lock:
            if self._running or self._begun != begun:
                return
            if gc.get_freeze_count() <= self._frozen:
                gc.collect()
            self._unfreeze()


_GARBAGE = anew_in_forks(_Garbage())


@contextmanager
def collected_soon() -> Generator[None]:
    """
    Collect the cyclic garbage that a compilation leaves soon behind it, in a thread; also a decorator.

    Else some later call would wait for that, or the end of the process. The collector walks over nothing that was there
    before, which may be much. Where a process has no collector, or has set objects aside itself, nothing is done.
    """
    _GARBAGE.begin()
    try:
        yield
    finally:
        _GARBAGE.end()

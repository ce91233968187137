"""Measure import times, so that they can be excluded from other measurements."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Self


class ImportClock:
    """
    Count the seconds of imports inside the `with` statement, in the thread that entered it.

    Nested imports are counted once, as part of the outer one. Several clocks may run at once, also in one thread.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._thread = 0

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        _FINDER.start(self)
        return self

    def __exit__(self, *_: object) -> None:
        _FINDER.stop(self)

    def mark(self) -> tuple[float, float]:
        """The present time, and the seconds of imports so far."""
        return time.perf_counter(), self.seconds

    def since(self, mark: tuple[float, float]) -> tuple[float, float]:
        """The seconds since a mark without imports, and those of imports."""
        now, imports = self.mark()
        return now - mark[0] - (imports - mark[1]), imports - mark[1]

    def measures(self, thread: int) -> bool:
        """Whether it counts the imports of a thread."""
        return self._thread == thread

    def entered(self) -> bool:
        """An import begins; return whether it is the outermost."""
        self._depth += 1
        return self._depth == 1

    def left(self, seconds: float) -> None:
        """An import ends; count its time if it is the outermost."""
        self._depth -= 1
        self.seconds += seconds


class _Finder:
    """A finder that comes first while clocks run; one for all clocks, which would otherwise call each other."""

    def __init__(self) -> None:
        self._clocks: list[ImportClock] = []
        self._turn = threading.Lock()

    def start(self, clock: ImportClock) -> None:
        """Let a clock count."""
        with self._turn:
            self._clocks = [*self._clocks, clock]
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)

    def stop(self, clock: ImportClock) -> None:
        """Let a clock count no more; one that was started twice, once less."""
        with self._turn:
            position = self._clocks.index(clock)
            self._clocks = [*self._clocks[:position], *self._clocks[position + 1 :]]
            if not self._clocks:
                sys.meta_path.remove(self)

    def running(self) -> list[ImportClock]:
        """The clocks that count the imports of this thread."""
        thread = threading.get_ident()
        return [clock for clock in self._clocks if clock.measures(thread)]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The result of the other finders, with a measured loader."""
        with _Span(self.running()):
            others = [finder for finder in sys.meta_path if finder is not self]
            found = (finder.find_spec(name, path, target) for finder in others if hasattr(finder, "find_spec"))
            spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and hasattr(spec.loader, "__dict__") and not isinstance(spec.loader, type):
            self._measure(spec.loader)
        return spec

    def _measure(self, loader: Any) -> None:
        """Measure a module's loader once."""
        execute = getattr(loader, "exec_module", None)
        if execute is None or "exec_module" in vars(loader):
            return

        def measured(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            with _Span(self.running()):
                execute(module)

        loader.exec_module = measured


_FINDER = _Finder()


class _Span:
    """The time of one import, for some clocks."""

    def __init__(self, clocks: Sequence[ImportClock]) -> None:
        self._clocks = clocks

    def __enter__(self) -> None:
        self._counted = [clock.entered() for clock in self._clocks]
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._start
        for clock, counts in zip(self._clocks, self._counted, strict=True):
            clock.left(seconds if counts else 0.0)

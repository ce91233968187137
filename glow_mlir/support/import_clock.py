"""How long Python takes to import modules while something else is measured, which should not be charged with that."""

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
    Counts the seconds that imports take inside its `with` statement, in the thread that entered it.

    Modules that are imported by others are counted once, as parts of these.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._thread = threading.get_ident()

    def __enter__(self) -> Self:
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def mark(self) -> tuple[float, float]:
        """This moment: the clock, and the seconds of imports so far."""
        return time.perf_counter(), self.seconds

    def since(self, mark: tuple[float, float]) -> tuple[float, float]:
        """The seconds since a moment, those of imports left out, and those of imports."""
        now, imports = self.mark()
        return now - mark[0] - (imports - mark[1]), imports - mark[1]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find, with a loader that is measured."""
        with _Span(self):
            others = [finder for finder in sys.meta_path if finder is not self]
            found = (finder.find_spec(name, path, target) for finder in others if hasattr(finder, "find_spec"))
            spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and hasattr(spec.loader, "__dict__") and not isinstance(spec.loader, type):
            self._measure(spec.loader)
        return spec

    def _measure(self, loader: Any) -> None:
        """Let a loader, which is that of one module, be measured once."""
        execute = getattr(loader, "exec_module", None)
        if execute is None or "exec_module" in vars(loader):
            return

        def measured(module: ModuleType) -> None:
            del loader.exec_module
            with _Span(self):
                execute(module)

        loader.exec_module = measured

    def entered(self) -> bool:
        """Count one import more that has begun; whether it is inside no other, and of the thread that is measured."""
        if threading.get_ident() != self._thread:
            return False
        self._depth += 1
        return self._depth == 1

    def left(self, seconds: float) -> None:
        """Count the end of an import, and its time where it was inside no other."""
        if threading.get_ident() == self._thread:
            self._depth -= 1
            self.seconds += seconds


class _Span:
    """The time of one import."""

    def __init__(self, clock: ImportClock) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        self._counts = self._clock.entered()
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._clock.left(time.perf_counter() - self._start if self._counts else 0.0)

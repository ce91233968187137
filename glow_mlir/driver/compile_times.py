"""Compile times: consecutive phases of a compilation that sum to the total."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from glow_mlir.support.import_clock import ImportClock

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.driver.compiler import Observer
    from glow_mlir.driver.pipelines import Stage

PYTHON = "Python's imports"
"""The phase of importing the compiler itself, when a process first needs a part of it."""
NAMES = {"imported": "import", "llvm": "machine code"}
"""Stage → name of the phase that ends with it, if it differs."""
LOAD = "load"
"""The phase after the last stage; the only one for a cached model."""
FIRST_RUN = "first run"
"""The phase after the last stage if the model is compiled at run time, for lack of sizes or values."""


class CompileTimes:
    """
    An observer of compilations that measures the seconds between stages, by name of the phase.

    The time of nested `others` is excluded. Phases do not overlap: a compilation waits for the work it delegates.
    """

    def __init__(self, others: Sequence[Observer] = ()) -> None:
        self.parts: dict[str, float] = {}
        self._others = others
        self._imports = ImportClock()
        self._mark = self._imports.mark()

    @contextmanager
    def measuring(self, last: str = LOAD) -> Generator[None]:
        """Measure the `with` statement; `last` is the phase after the last stage."""
        self._mark = self._imports.mark()
        with self._imports:
            yield
        self._end(last)

    @contextmanager
    def measuring_run(self) -> Generator[None]:
        """Measure a run, which counts if it is part of a compilation."""
        before = dict(self.parts)
        with self.measuring(FIRST_RUN):
            yield
        if self.parts.keys() <= before.keys() | {FIRST_RUN, PYTHON}:
            self.parts = before

    @property
    def total(self) -> float:
        """The sum of all phases."""
        return sum(self.parts.values())

    def __call__(self, stage: Stage, module: ModuleOp, seconds: float) -> None:
        taken = self._end(NAMES.get(stage.name, stage.name))
        for observer in self._others:
            observer(stage, module, taken)
        self._mark = self._imports.mark()

    def _end(self, name: str) -> float:
        """End a phase, and return its time without imports."""
        taken, imports = self._imports.since(self._mark)
        self._mark = self._imports.mark()
        self.parts[PYTHON] = self.parts.get(PYTHON, 0.0) + imports
        self.parts[name] = self.parts.get(name, 0.0) + taken
        return taken

    def lines(self) -> list[str]:
        """The total, and each phase below it, in seconds."""
        width = max(map(len, self.parts), default=0)
        rows = [f"  {name:{width}}  {seconds:6.3f} s" for name, seconds in self.parts.items()]
        return [f"compile time  {self.total:.3f} s", *rows]

"""Where the time of a compilation goes: parts that follow each other, and sum to the whole."""

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
"""What is spent on loading the compiler itself, the first time that a process needs a part of it."""
NAMES = {"imported": "import", "llvm": "machine code"}
"""Stage → how the part that ends with it is called, where that is not its name."""
LOAD = "load"
"""The part behind the last stage; of a model that was in the cache, all of it."""
FIRST_RUN = "first run"
"""The part behind the last stage of what is compiled only when it is run, since sizes or values were missing."""


class CompileTimes:
    """
    An observer of compilations that measures the time between stages, in seconds by the name of the part.

    What `others` do, which it calls, is not counted. Nothing overlaps: a compilation waits for what it has others do.
    """

    def __init__(self, others: Sequence[Observer] = ()) -> None:
        self.parts: dict[str, float] = {}
        self._others = others
        self._imports = ImportClock()
        self._mark = self._imports.mark()

    @contextmanager
    def measuring(self, last: str = LOAD) -> Generator[None]:
        """Measure what is inside the `with` statement; `last` is the part behind the last stage."""
        self._mark = self._imports.mark()
        with self._imports:
            yield
        self._end(last)

    @contextmanager
    def measuring_run(self) -> Generator[None]:
        """Measure a run, which counts where it is part of a compilation."""
        before = dict(self.parts)
        with self.measuring(FIRST_RUN):
            yield
        if self.parts.keys() <= before.keys() | {FIRST_RUN, PYTHON}:
            self.parts = before

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return sum(self.parts.values())

    def __call__(self, stage: Stage, module: ModuleOp, seconds: float) -> None:
        taken = self._end(NAMES.get(stage.name, stage.name))
        for observer in self._others:
            observer(stage, module, taken)
        self._mark = self._imports.mark()

    def _end(self, name: str) -> float:
        """End a part, and give its time without that of imports."""
        taken, imports = self._imports.since(self._mark)
        self._mark = self._imports.mark()
        self.parts[PYTHON] = self.parts.get(PYTHON, 0.0) + imports
        self.parts[name] = self.parts.get(name, 0.0) + taken
        return taken

    def lines(self) -> list[str]:
        """The total, and below it each part, in seconds."""
        width = max(map(len, self.parts), default=0)
        rows = [f"  {name:{width}}  {seconds:6.3f} s" for name, seconds in self.parts.items()]
        return [f"compile time  {self.total:.3f} s", *rows]

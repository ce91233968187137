"""Statistics of pass runs: operations before and after, counters, and time."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.driver.pipelines import PassObserver
from glow_mlir.ir.statistics import counting
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class PassCount:
    """The statistics of one pass run, with its patterns by name, and the operations by name before and after."""

    name: str
    counted: Counter[str]
    before: Counter[str]
    after: Counter[str]
    seconds: float = 0.0


@dataclass
class PassCounts(PassObserver):
    """Collects a `PassCount` of each run; if it is the first of several observers, its times exclude the others."""

    runs: list[PassCount] = field(default_factory=list[PassCount])
    _before: Counter[str] = field(default_factory=Counter[str])
    _collection: ExitStack = field(default_factory=ExitStack)
    _counted: Counter[str] = field(default_factory=Counter[str])
    _start: float = 0.0

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        self._before = Counter(op.name for op in module.walk())
        self._counted = self._collection.enter_context(counting())
        self._start = time.perf_counter()

    def after(self, item: ModulePass, module: ModuleOp) -> None:
        seconds = time.perf_counter() - self._start
        self._collection.close()
        after = Counter(op.name for op in module.walk())
        self.runs.append(PassCount(item.name, self._counted, self._before, after, seconds))

    def failed(self, item: ModulePass, module: ModuleOp) -> None:
        self._collection.close()

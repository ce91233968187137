"""
Statistics of passes: `statistics.count("copies eliminated")`; `glow-opt --mlir-pass-statistics` prints them.

Counts go to the collector around the pass, by thread and task; without a collector, nothing is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_COLLECTED: ContextVar[Counter[str] | None] = ContextVar("collected", default=None)


def count(what: str, number: int = 1) -> None:
    """Add `number` to the statistic `what` of the running pass: a plural that reads well after a number."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected[what] += number


@contextmanager
def counting() -> Generator[Counter[str]]:
    """Collect the counts of passes inside the `with` statement."""
    collected: Counter[str] = Counter()
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)

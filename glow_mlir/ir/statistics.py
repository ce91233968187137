"""
What passes count: `statistics.count("copies eliminated")`; `glow-opt --mlir-pass-statistics` shows it.

Counts go to whoever collects them around the pass, by thread and task; nothing is kept where nobody does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_COLLECTED: ContextVar[Counter[str] | None] = ContextVar("collected", default=None)


def count(what: str, number: int = 1) -> None:
    """Add `number` to the statistic `what` of the pass that runs: a plural that reads well behind its number."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected[what] += number


@contextmanager
def counting() -> Generator[Counter[str]]:
    """Collect what passes count inside the `with` statement."""
    collected: Counter[str] = Counter()
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)

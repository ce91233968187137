"""Find the fastest of several pieces of code: run them in turns within a time limit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

Clock = Callable[[], float]
"""Returns seconds since some moment."""

FEWEST_ROUNDS = 5
MAX_ROUNDS = 40

HOPELESS = 2.0
"""Code that is this many times slower than the fastest in each of the `TRYING` rounds is dropped."""

TRYING = 3
"""
Rounds in which all run. Disturbances only add to the time of a run, so the minimum is nearest to the true time. To lose
the fastest here, each of its runs would have to take twice as long by chance, with the runs of all others in between.
If the chance of one such run is a tenth, this happens once in a thousand races, and costs time but does not change
results.
"""


def race(runs: Sequence[Callable[[], object]], seconds: float = 0.5, clock: Clock = time.perf_counter) -> list[float]:
    """
    The best time of each of `runs`, in seconds.

    Each runs once to be loaded, and then in turns, because processor frequencies drift: for `seconds`, but at least a
    few times; slow ones stop early. Then the first and the fastest run again for as long, so that one of them has to be
    faster more often than by chance.
    """
    for run in runs:
        run()
    best = [math.inf] * len(runs)
    everyone = range(len(runs))
    _rounds(runs, best, everyone, TRYING, 0.0, clock)
    close = [index for index in everyone if index == 0 or best[index] < HOPELESS * min(best)]
    _rounds(runs, best, close, FEWEST_ROUNDS - TRYING, seconds, clock)
    _rounds(runs, best, sorted({0, best.index(min(best))}), FEWEST_ROUNDS, seconds, clock)
    return best


def _rounds(
    runs: Sequence[Callable[[], object]],
    best: list[float],
    chosen: Sequence[int],
    fewest: int,
    seconds: float,
    clock: Clock,
) -> None:
    """Lower the best times of the chosen runs, if there are several."""
    end = clock() + seconds
    for number in range(MAX_ROUNDS if seconds else fewest):
        if (number >= fewest and clock() >= end) or (number and len(chosen) < 2):
            break
        for index in chosen:
            start = clock()
            runs[index]()
            best[index] = min(best[index], clock() - start)

"""Which of several pieces of code is the fastest: they run in turns, as often as a time limit allows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

Clock = Callable[[], float]
"""Seconds that have gone by since some moment."""

FEWEST_ROUNDS = 5
MAX_ROUNDS = 40

HOPELESS = 2.0
"""What takes that many times as long as the fastest in each of the `TRYING` rounds does not run again."""

TRYING = 3
"""
Rounds that all run in. What disturbs a run only adds to its time, so that the best of them is the nearest to the truth;
to lose the fastest here, each of its runs, of which all the others lie in between, has to take twice as long by chance.
Where that is one in ten, it happens once in a thousand races, and costs time but no digits.
"""


def race(runs: Sequence[Callable[[], object]], seconds: float = 0.5, clock: Clock = time.perf_counter) -> list[float]:
    """
    The seconds that each of `runs` takes at best.

    Everything runs once to be loaded, and then in turns, since the frequency of a processor drifts: until `seconds`
    are over, but at least a few times; what is hopeless stops early. The first and the fastest then meet again for as
    long, so that one of them has to be faster more often than by chance.
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
    """Lower the best times of the chosen ones, where there are several."""
    end = clock() + seconds
    for number in range(MAX_ROUNDS if seconds else fewest):
        if (number >= fewest and clock() >= end) or (number and len(chosen) < 2):
            break
        for index in chosen:
            start = clock()
            runs[index]()
            best[index] = min(best[index], clock() - start)

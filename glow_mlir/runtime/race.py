"""Which of several pieces of code is the fastest: they run in turns, as often as a time limit allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

Clock = Callable[[], float]
"""Seconds that have gone by since some moment."""

FEWEST_ROUNDS = 3
MOST_ROUNDS = 30

HOPELESS = 2.0
"""What took that many times as long as the fastest in its first run that counts does not run again."""


def race(runs: Sequence[Callable[[], object]], seconds: float = 0.5, clock: Clock = time.perf_counter) -> list[float]:
    """
    The seconds that each of `runs` takes at best.

    Everything runs once to be loaded, and then in turns, since the frequency of a processor drifts: until `seconds`
    are over, but at least a few times.
    """
    end = clock() + seconds
    for run in runs:
        run()
    best = [_timed(run, clock) for run in runs]
    close = [index for index, time_ in enumerate(best) if time_ < HOPELESS * min(best)]
    for number in range(MOST_ROUNDS - 1):
        if len(close) < 2 or (number + 1 >= FEWEST_ROUNDS and clock() >= end):
            break
        for index in close:
            best[index] = min(best[index], _timed(runs[index], clock))
    return best


def _timed(run: Callable[[], object], clock: Clock) -> float:
    start = clock()
    run()
    return clock() - start

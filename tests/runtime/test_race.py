"""The race between pieces of code, on a clock that they move themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from glow_mlir.runtime.race import FEWEST_ROUNDS, MAX_ROUNDS, TRYING, race


@dataclass
class Track:
    """Runners whose runs take the times that they are given, the last one again and again."""

    now: float = 0.0
    runs: list[int] = field(default_factory=list[int])

    def runner(self, times: Sequence[float]) -> Callable[[], None]:
        """A function that lets the next of `times` go by."""
        number = len(self.runs)
        self.runs.append(0)

        def run() -> None:
            self.now += times[min(self.runs[number], len(times) - 1)]
            self.runs[number] += 1

        return run

    def race(self, *times: Sequence[float], seconds: float) -> list[float]:
        """Let runners with these times race."""
        found = race([self.runner(given) for given in times], seconds, lambda: self.now)
        return [round(time, 6) for time in found]


def test_best_of_several_runs_counts_and_the_first_does_not() -> None:
    """A first run that is short or long, and a disturbance, are no matter."""
    track = Track()
    assert track.race([9.0, 1.5, 1.0, 1.2], [0.1, 1.1, 3.0, 1.1], seconds=100) == [1.0, 1.1]


def test_few_rounds_where_time_is_short() -> None:
    """The first and the fastest meet twice as often."""
    track = Track()
    assert track.race([2.0], [1.5], [1.7], seconds=0) == [2.0, 1.5, 1.7]
    assert track.runs == [1 + 2 * FEWEST_ROUNDS, 1 + 2 * FEWEST_ROUNDS, 1 + FEWEST_ROUNDS]


def test_no_end_of_time_means_many_rounds() -> None:
    track = Track()
    track.race([0.001], [0.0009], seconds=100)
    assert track.runs == [1 + TRYING + 2 * MAX_ROUNDS] * 2


def test_hopeless_runners_stop_but_not_the_first() -> None:
    track = Track()
    assert track.race([5.0], [1.0], [5.0], [1.9], seconds=0) == [5.0, 1.0, 5.0, 1.9]
    assert track.runs == [1 + 2 * FEWEST_ROUNDS, 1 + 2 * FEWEST_ROUNDS, 1 + TRYING, 1 + FEWEST_ROUNDS]


def test_runner_that_is_disturbed_in_all_rounds_but_one_stays() -> None:
    track = Track()
    assert track.race([1.0], [0.5, 9.0, 9.0, 0.5], seconds=0) == [1.0, 0.5]


def test_one_runner_alone_runs_a_few_times() -> None:
    track = Track()
    assert track.race([1.0], seconds=1000) == [1.0]
    assert track.runs[0] <= 1 + FEWEST_ROUNDS

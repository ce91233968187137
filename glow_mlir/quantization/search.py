"""
Which nodes compute in which precision: the fastest assignment whose loss is small enough, found by trials.

The algorithm is partial quantization by a sensitivity analysis (Wu et al., arXiv 2004.09602, §6.2): each node alone is
made narrow, and of the model with all nodes narrow, the most sensitive ones are widened until the loss is small enough.
Before that, the values that the most sensitive nodes read are calibrated one after the other, and behind it, nodes that
may be narrow after all are found in the same way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from glow_mlir.options.quantization import CALIBRATIONS
from glow_mlir.support.dataclass import dataclass

FULL = "f32"
"""The precision of a model as it is."""

CODES = "int8"
"""The precision whose codes are calibrated."""

GAIN = 0.02
"""By what part a choice has to be faster than one that loses less to be worth its loss: what is less may be chance."""

POINTS = 8
"""How many numbers of widened nodes, evenly spaced, are tried before it is searched between two of them."""

CALIBRATED = 8
"""How many values, of the most sensitive nodes first, are tried with each calibration."""


@dataclass(frozen=True)
class Unit:
    """What has one precision: the products of a node."""

    name: str
    pattern: str
    """What `Quantization.keep` calls it."""
    values: tuple[str, ...]
    """What it reads as codes, by the names of a profile."""


@dataclass(frozen=True)
class Choice:
    """The precision of each unit, in their order, the calibration of codes, and that of single values."""

    precisions: tuple[str, ...]
    calibration: str = CALIBRATIONS[0]
    calibrations: tuple[tuple[str, str], ...] = ()

    def widened(self, unit: int, precision: str) -> Choice:
        """The same with another precision of one unit."""
        found = list(self.precisions)
        found[unit] = precision
        return replace(self, precisions=tuple(found))

    def calibrated(self, value: str, calibration: str) -> Choice:
        """The same with another calibration of one value."""
        return replace(self, calibrations=tuple(sorted({**dict(self.calibrations), value: calibration}.items())))


@dataclass(frozen=True, order=True)
class Loss:
    """What a choice loses, as a share, and how far its outputs are from those of f32, as a share of their amplitude."""

    loss: float
    noise: float


@dataclass(frozen=True)
class Speed:
    """How many times as fast as f32 some precisions are, and how long a run takes."""

    speedup: float
    seconds: float


@dataclass(frozen=True)
class Point:
    """A choice, what it loses, and how fast it is."""

    choice: Choice
    loss: Loss
    speed: Speed


class _ExhaustedError(Exception):
    """There were as many trials as there may be."""


@dataclass
class PrecisionSearch:
    """
    A search among the precisions of some units, the narrowest first and f32 last, for the fastest choice that loses no
    more than `max_loss`.

    `evaluate` tries a choice, of which there are no more than `trials`. `measure` takes the time of precisions, which
    does not depend on calibrations.
    """

    units: Sequence[Unit]
    precisions: Sequence[str]
    evaluate: Callable[[Choice], Loss]
    measure: Callable[[tuple[str, ...]], Speed]
    max_loss: float
    trials: int
    losses: dict[Choice, Loss] = field(default_factory=dict[Choice, Loss], init=False)
    speeds: dict[tuple[str, ...], Speed] = field(default_factory=dict[tuple[str, ...], Speed], init=False)

    def run(self) -> Point:
        """
        The fastest choice found that loses no more than it may, as far as the gain is no chance: each is faster than
        those that lose less by `GAIN`, and all of f32 stays where nothing is.
        """
        with contextlib.suppress(_ExhaustedError):
            self._run()
        full = self._uniform(FULL)
        best = Point(full, self.losses[full], self.speeds[full.precisions])
        for point in sorted(self.points(), key=lambda point: (point.loss, -point.speed.speedup)):
            if self._fits(point.choice) and point.speed.speedup > (1 + GAIN) * best.speed.speedup:
                best = point
        return best

    def most_trials(self) -> int:
        """How many trials there are at most, about."""
        uniform = len(self.precisions) + len(CALIBRATIONS)
        units = len(self.units) * len(self.precisions)
        return uniform + units + 2 * POINTS + CALIBRATED * len(CALIBRATIONS)

    def points(self) -> list[Point]:
        """What was tried and measured."""
        return [
            Point(choice, loss, self.speeds[choice.precisions])
            for choice, loss in self.losses.items()
            if choice.precisions in self.speeds
        ]

    def front(self) -> list[Point]:
        """The Pareto front, fastest first: the points but for those that another is as fast as, with less loss."""
        found: list[Point] = []
        for point in sorted(self.points(), key=lambda point: (-point.speed.speedup, point.loss)):
            if not found or point.loss < found[-1].loss:
                found.append(point)
        return found

    def _run(self) -> None:
        ladder, start = self._ladder()
        if len(ladder) == 1:
            return
        order = self._by_sensitivity(start)
        current = self._widened(ladder, self._calibrated(start, order), order)
        self._narrowed(current, ladder, order)

    def _loss(self, choice: Choice) -> Loss:
        """What a choice loses; it is tried once."""
        if choice not in self.losses:
            if len(self.losses) >= max(self.trials, 1):
                raise _ExhaustedError
            self.losses[choice] = self.evaluate(choice)
        return self.losses[choice]

    def _speedup(self, choice: Choice) -> float:
        """How fast a choice is, which is measured once for its precisions."""
        if choice.precisions not in self.speeds:
            self.speeds[choice.precisions] = self.measure(choice.precisions)
        return self.speeds[choice.precisions].speedup

    def _uniform(self, precision: str) -> Choice:
        """All units in one precision."""
        return Choice((precision,) * len(self.units))

    def _ladder(self) -> tuple[list[str], Choice]:
        """The precisions that are faster than all wider ones, the narrowest first, and all units in that one."""
        ladder, chosen = [FULL], self._uniform(FULL)
        self._loss(chosen)
        fastest = self._speedup(chosen)
        for precision in reversed(self.precisions[:-1]):
            uniform = [self._uniform(precision)]
            if precision == CODES:
                uniform = [replace(uniform[0], calibration=calibration) for calibration in CALIBRATIONS]
            best = min(uniform, key=lambda choice: self._loss(choice).noise)
            if self._speedup(best) > (1 + GAIN) * fastest:
                ladder.insert(0, precision)
                chosen, fastest = best, self._speedup(best)
        return ladder, chosen

    def _by_sensitivity(self, narrow: Choice) -> list[int]:
        """The units, that whose codes alone make the most noise first."""
        noises: list[float] = []
        for unit, precision in enumerate(narrow.precisions):
            alone = replace(self._uniform(FULL), calibration=narrow.calibration).widened(unit, precision)
            noises.append(self._loss(alone).noise)
        return sorted(range(len(noises)), key=lambda unit: -noises[unit])

    def _calibrated(self, current: Choice, order: Sequence[int]) -> Choice:
        """The choice with the calibration of each value that makes the least noise, one value after the other."""
        read = [value for unit in order if current.precisions[unit] == CODES for value in self.units[unit].values]
        for value in list(dict.fromkeys(read))[:CALIBRATED]:
            for calibration in CALIBRATIONS:
                if calibration != current.calibration:
                    changed = current.calibrated(value, calibration)
                    if self._loss(changed).noise < self._loss(current).noise:
                        current = changed
        return current

    def _widened(self, ladder: Sequence[str], start: Choice, order: Sequence[int]) -> Choice:
        """
        The choice with the fewest steps that loses no more than it may: a step widens the next unit in order, from one
        precision to the next, and all units have taken one before any takes a second.
        """
        steps = [start]
        for precision in ladder[1:]:
            for unit in order:
                steps.append(steps[-1].widened(unit, precision))
        last = len(steps) - 1
        steps[last] = self._uniform(FULL)
        places = sorted({last * point // POINTS for point in range(POINTS + 1)})
        fits = {place: self._fits(steps[place]) for place in places}
        for place in places:
            self._speedup(steps[place])
        above = min(place for place, fit in fits.items() if fit)
        below = max((place for place in fits if place < above), default=above)
        while above - below > 1:
            middle = (above + below) // 2
            above, below = (middle, below) if self._fits(steps[middle]) else (above, middle)
        self._speedup(steps[above])
        return steps[above]

    def _fits(self, choice: Choice) -> bool:
        return self._loss(choice).loss <= self.max_loss

    def _narrowed(self, current: Choice, ladder: Sequence[str], order: Sequence[int]) -> Choice:
        """The choice with each wide unit, the least sensitive first, as narrow as it fits and is not slower."""
        for unit in reversed(order):
            for precision in ladder[: ladder.index(current.precisions[unit])]:
                changed = current.widened(unit, precision)
                if self._fits(changed) and self._speedup(changed) >= self._speedup(current):
                    current = changed
                    break
        return current

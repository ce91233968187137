"""
Search for the fastest assignment of precisions to nodes with an acceptable loss, by trials.

The algorithm is partial quantization by sensitivity analysis (Wu et al., arXiv 2004.09602, §6.2): each node alone is
narrowed; then, from the model with all nodes narrow, the most sensitive ones are widened until the loss is small
enough. Before that, the operands of the most sensitive nodes are calibrated one by one; afterwards, nodes that can be
narrow after all are found in the same way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from glow_mlir.options.quantization import CALIBRATIONS
from glow_mlir.support.dataclass import dataclass

FULL = "f32"
"""The precision of an unmodified model."""

QUANTIZED = "int8"
"""The precision whose quantized values are calibrated."""

GAIN = 0.02
"""Minimum relative speedup over a choice of less loss: smaller differences may be noise."""

POINTS = 8
"""Number of evenly spaced counts of widened nodes tried before a search between two of them."""

CALIBRATED = 8
"""Number of values, of the most sensitive nodes first, for which each calibration is tried."""


@dataclass(frozen=True)
class Unit:
    """A unit of one precision: the products of a node."""

    name: str
    pattern: str
    """Its name in `Quantization.keep`."""
    values: tuple[str, ...]
    """Its quantized operands, by profile name."""


@dataclass(frozen=True)
class Choice:
    """The precision of each unit, in order, the default calibration, and that of single values."""

    precisions: tuple[str, ...]
    calibration: str = CALIBRATIONS[0]
    calibrations: tuple[tuple[str, str], ...] = ()

    def widened(self, unit: int, precision: str) -> Choice:
        """A copy with another precision of one unit."""
        found = list(self.precisions)
        found[unit] = precision
        return replace(self, precisions=tuple(found))

    def calibrated(self, value: str, calibration: str) -> Choice:
        """A copy with another calibration of one value."""
        return replace(self, calibrations=tuple(sorted({**dict(self.calibrations), value: calibration}.items())))


@dataclass(frozen=True, order=True)
class Loss:
    """The relative loss of a choice, and the distance of its outputs from f32, relative to their amplitude."""

    loss: float
    noise: float


@dataclass(frozen=True)
class Speed:
    """The speedup of some precisions over f32, and the time of a run."""

    speedup: float
    seconds: float


@dataclass(frozen=True)
class Point:
    """A choice with its loss and speed."""

    choice: Choice
    loss: Loss
    speed: Speed


class _ExhaustedError(Exception):
    """The maximum number of trials is reached."""


@dataclass
class PrecisionSearch:
    """
    A search over the precisions of some units, narrowest first and f32 last, for the fastest choice that loses at most
    `max_loss`.

    `evaluate` tries a choice, at most `trials` times. `measure` times precisions, independently of calibrations.
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
        The fastest acceptable choice found whose gain is significant: each must be faster than choices of less loss by
        `GAIN`, and f32 stays if none is.
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
        """The approximate maximum number of trials."""
        uniform = len(self.precisions) + len(CALIBRATIONS)
        units = len(self.units) * len(self.precisions)
        return uniform + units + 2 * POINTS + CALIBRATED * len(CALIBRATIONS)

    def points(self) -> list[Point]:
        """All choices that were tried and measured."""
        return [
            Point(choice, loss, self.speeds[choice.precisions])
            for choice, loss in self.losses.items()
            if choice.precisions in self.speeds
        ]

    def front(self) -> list[Point]:
        """The Pareto front, fastest first: points for which no other is at least as fast with less loss."""
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
        """The loss of a choice; cached."""
        if choice not in self.losses:
            if len(self.losses) >= max(self.trials, 1):
                raise _ExhaustedError
            self.losses[choice] = self.evaluate(choice)
        return self.losses[choice]

    def _speedup(self, choice: Choice) -> float:
        """The speedup of a choice, measured once for its precisions."""
        if choice.precisions not in self.speeds:
            self.speeds[choice.precisions] = self.measure(choice.precisions)
        return self.speeds[choice.precisions].speedup

    def _uniform(self, precision: str) -> Choice:
        """All units in one precision."""
        return Choice((precision,) * len(self.units))

    def _ladder(self) -> tuple[list[str], Choice]:
        """
        The precisions that are faster than all wider ones, narrowest first, each with the choice that uses it
        throughout.
        """
        ladder, chosen = [FULL], self._uniform(FULL)
        self._loss(chosen)
        fastest = self._speedup(chosen)
        for precision in reversed(self.precisions[:-1]):
            uniform = [self._uniform(precision)]
            if precision == QUANTIZED:
                uniform = [replace(uniform[0], calibration=calibration) for calibration in CALIBRATIONS]
            best = min(uniform, key=lambda choice: self._loss(choice).noise)
            if self._speedup(best) > (1 + GAIN) * fastest:
                ladder.insert(0, precision)
                chosen, fastest = best, self._speedup(best)
        return ladder, chosen

    def _by_sensitivity(self, narrow: Choice) -> list[int]:
        """The units by the noise of quantizing each alone, loudest first."""
        noises: list[float] = []
        for unit, precision in enumerate(narrow.precisions):
            alone = replace(self._uniform(FULL), calibration=narrow.calibration).widened(unit, precision)
            noises.append(self._loss(alone).noise)
        return sorted(range(len(noises)), key=lambda unit: -noises[unit])

    def _calibrated(self, current: Choice, order: Sequence[int]) -> Choice:
        """The choice with the quietest calibration of each value, chosen one value after the other."""
        read = [value for unit in order if current.precisions[unit] == QUANTIZED for value in self.units[unit].values]
        for value in list(dict.fromkeys(read))[:CALIBRATED]:
            for calibration in CALIBRATIONS:
                if calibration != current.calibration:
                    changed = current.calibrated(value, calibration)
                    if self._loss(changed).noise < self._loss(current).noise:
                        current = changed
        return current

    def _widened(self, ladder: Sequence[str], start: Choice, order: Sequence[int]) -> Choice:
        """
        The choice with the fewest acceptable steps: a step widens the next unit by one precision, and no unit takes a
        second step before all have taken one.
        """
        steps = [start]
        for precision in ladder[1:]:
            for unit in order:
                steps.append(steps[-1].widened(unit, precision))
        last = len(steps) - 1
        steps[last] = self._uniform(FULL)
        positions = sorted({last * point // POINTS for point in range(POINTS + 1)})
        fits = {position: self._fits(steps[position]) for position in positions}
        for position in positions:
            self._speedup(steps[position])
        above = min(position for position, fit in fits.items() if fit)
        below = max((position for position in fits if position < above), default=above)
        while above - below > 1:
            middle = (above + below) // 2
            above, below = (middle, below) if self._fits(steps[middle]) else (above, middle)
        self._speedup(steps[above])
        return steps[above]

    def _fits(self, choice: Choice) -> bool:
        return self._loss(choice).loss <= self.max_loss

    def _narrowed(self, current: Choice, ladder: Sequence[str], order: Sequence[int]) -> Choice:
        """The choice with each wide unit, least sensitive first, narrowed as far as loss and speed allow."""
        for unit in reversed(order):
            for precision in ladder[: ladder.index(current.precisions[unit])]:
                changed = current.widened(unit, precision)
                if self._fits(changed) and self._speedup(changed) >= self._speedup(current):
                    current = changed
                    break
        return current

"""The search for precisions finds the fastest choice that loses little enough, by trials that are given."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from glow_mlir.quantization.search import FULL, QUANTIZED, Choice, Loss, PrecisionSearch, Speed, Unit

SHARES: Mapping[str, float] = {"int8": 1.0, "bf16": 0.1, "f32": 0.0}
"""Precision → the share of the noise of a unit in codes that it has in that."""


@dataclass
class Model:
    """A model whose losses add up: the noise and the time of each unit in codes, and times by precision."""

    noises: Sequence[float]
    times: Mapping[str, float] = field(default_factory=lambda: {"int8": 1.0, "bf16": 2.0, "f32": 4.0})
    better: Mapping[str, str] = field(default_factory=dict[str, str])
    """Value → the calibration by which the unit that reads it has half the noise."""
    tried: list[Choice] = field(default_factory=list[Choice])

    def units(self) -> list[Unit]:
        return [Unit(f"n{number}", f"n{number}", (f"v{number}",)) for number in range(len(self.noises))]

    def evaluate(self, choice: Choice) -> Loss:
        self.tried.append(choice)
        own = dict(choice.calibrations)
        noise = 0.0
        for number, (size, precision) in enumerate(zip(self.noises, choice.precisions, strict=True)):
            chosen = own.get(f"v{number}", choice.calibration)
            is_better = precision == QUANTIZED and self.better.get(f"v{number}") == chosen
            noise += size * SHARES[precision] * (0.5 if is_better else 1.0)
        return Loss(noise, noise)

    def measure(self, precisions: tuple[str, ...]) -> Speed:
        seconds = sum(self.times[precision] for precision in precisions)
        return Speed(self.times[FULL] * len(precisions) / seconds, seconds)

    def search(self, max_loss: float, precisions: Sequence[str] = tuple(SHARES), trials: int = 1000) -> PrecisionSearch:
        return PrecisionSearch(self.units(), precisions, self.evaluate, self.measure, max_loss, trials)


def noises(count: int, seed: int) -> list[float]:
    return [float(size) for size in np.random.default_rng(seed).uniform(0.1, 1, count)]


@pytest.mark.parametrize("seed", range(20))
def test_as_many_units_are_narrow_as_may_be(seed: int) -> None:
    model = Model(noises(7, seed))
    max_loss = float(np.random.default_rng(seed + 100).uniform(0, 4))
    best = model.search(max_loss, (QUANTIZED, FULL)).run()
    every = [Choice(found) for found in itertools.product((QUANTIZED, FULL), repeat=7)]
    fastest = max(model.measure(c.precisions).speedup for c in every if model.evaluate(c).loss <= max_loss)
    assert best.loss.loss <= max_loss
    assert best.speed.speedup == fastest


@pytest.mark.parametrize("seed", range(10))
def test_three_precisions_lose_no_more_than_they_may(seed: int) -> None:
    model = Model(noises(6, seed))
    found = model.search(0.4)
    best = found.run()
    assert best.loss.loss <= 0.4
    if sum(model.noises) * SHARES["bf16"] <= 0.4:
        assert best.speed.speedup >= model.measure(("bf16",) * 6).speedup
    assert all(point.speed.speedup <= best.speed.speedup for point in found.points() if point.loss.loss <= 0.4)


def test_what_is_no_faster_is_left_out() -> None:
    model = Model(noises(5, 0), times={"int8": 4.0, "bf16": 2.0, "f32": 4.0})
    best = model.search(100.0).run()
    assert best.choice.precisions == ("bf16",) * 5
    assert not any(set(choice.precisions) == {QUANTIZED, FULL} for choice in model.tried)
    slow = Model(noises(5, 0), times={"int8": 5.0, "bf16": 5.0, "f32": 4.0})
    assert slow.search(100.0).run().choice.precisions == (FULL,) * 5


@dataclass
class Lucky(Model):
    """A model whose times are by chance up to 2 % off."""

    def measure(self, precisions: tuple[str, ...]) -> Speed:
        found = super().measure(precisions)
        by_chance = 1 + 0.019 * (len(set(precisions)) - 1)
        return Speed(found.speedup * by_chance, found.seconds / by_chance)


def test_gain_by_chance_is_worth_no_loss() -> None:
    times = {"int8": 1.0, "f32": 1.0}
    model = Lucky(noises(5, 0), times=times)
    search = model.search(100.0, (QUANTIZED, FULL))
    for precisions in itertools.product((QUANTIZED, FULL), repeat=5):
        choice = Choice(precisions)
        search.losses[choice], search.speeds[precisions] = model.evaluate(choice), model.measure(precisions)
    assert max(point.speed.speedup for point in search.points()) > 1.01
    assert search.run().choice.precisions == (FULL,) * 5


def test_of_choices_as_fast_the_one_that_loses_less_is_best() -> None:
    model = Model([1.0, 1.0], times={"int8": 1.0, "bf16": 1.01, "f32": 4.0})
    search = model.search(100.0)
    for precisions in itertools.product(SHARES, repeat=2):
        choice = Choice(precisions)
        search.losses[choice], search.speeds[precisions] = model.evaluate(choice), model.measure(precisions)
    assert search.run().choice.precisions == ("bf16", "bf16")


def test_nothing_may_be_lost() -> None:
    best = Model(noises(5, 0)).search(0.0).run()
    assert (best.choice.precisions, best.loss.loss, best.speed.speedup) == ((FULL,) * 5, 0.0, 1.0)


@pytest.mark.parametrize("trials", [1, 2, 5, 9, 14])
def test_there_are_no_more_trials_than_there_may_be(trials: int) -> None:
    model = Model(noises(8, 0))
    best = model.search(1.0, trials=trials).run()
    assert len(model.tried) == len(set(model.tried)) == trials
    assert best.loss.loss <= 1.0


def test_values_get_the_calibration_that_makes_less_noise() -> None:
    model = Model([1.0, 0.5, 0.25], better={"v0": "kl", "v2": "percentile"})
    best = model.search(10.0, (QUANTIZED, FULL)).run()
    # All by "kl" make the least noise; then that of the last value is halved, too.
    assert best.choice.calibration == "kl"
    assert best.choice.calibrations == (("v2", "percentile"),)
    assert best.loss.loss == pytest.approx(0.5 + 0.5 + 0.125)


def test_a_calibration_leaves_room_for_a_narrow_unit() -> None:
    """With all of them by one calibration, both do not fit; with one each, they do."""
    model = Model([1.0, 1.0], better={"v0": "kl", "v1": "mse"})
    assert model.search(1.2, (QUANTIZED, FULL)).run().choice.precisions == (QUANTIZED, QUANTIZED)


def test_front_has_what_nothing_else_is_better_than() -> None:
    search = Model(noises(8, 3)).search(1.0)
    search.run()
    front, points = search.front(), search.points()
    for point in front:
        assert not any(p.speed.speedup > point.speed.speedup and p.loss <= point.loss for p in points)
    for point in points:
        assert any(p.speed.speedup >= point.speed.speedup and p.loss <= point.loss for p in front)
    speeds = [point.speed.speedup for point in front]
    assert speeds == sorted(set(speeds), reverse=True)
    assert front[-1].choice.precisions == (FULL,) * 8

"""Optimizers are those of PyTorch, step for step, and schedules multiply the rate as they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optimizer_cases import CASES, LAMB_CASE, START, STEPS, gradient
from training_models import weighted_sum

from glow_mlir.api.training_session import TrainingSession
from glow_mlir.training import schedules
from glow_mlir.training.optimizers import SGD, AdamW, Optimizer
from glow_mlir.training.schedules import Schedule

TRAJECTORIES = json.loads((Path(__file__).parent / "trajectories.json").read_text(encoding="utf-8"))["parameters"]


def trained(optimizer: Optimizer, steps: int = STEPS, **options: Any) -> np.ndarray:
    """The parameter after some steps with the gradients of the cases."""
    session = TrainingSession(weighted_sum(START), loss="output", optimizer=optimizer, cache=False, **options)
    for step in range(steps):
        session.step({"x": gradient(step)})
    assert session.steps == steps
    return session.weights()["w"]


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_pytorch(name: str) -> None:
    np.testing.assert_allclose(trained(CASES[name][0]), TRAJECTORIES[name], rtol=1e-12, atol=1e-12)


def test_interpreter_takes_the_same_steps() -> None:
    name = "adamw"
    np.testing.assert_allclose(trained(CASES[name][0], backend="interpreter"), TRAJECTORIES[name], rtol=1e-12)


def test_steps_of_lamb_are_as_long_as_the_parameter_is_large() -> None:
    w, first, second = START.copy(), np.zeros_like(START), np.zeros_like(START)
    for step in range(STEPS):
        g = gradient(step)
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        direction = first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-6) + 0.05 * w
        w = w - 0.02 * np.linalg.norm(w) / np.linalg.norm(direction) * direction
    np.testing.assert_allclose(trained(LAMB_CASE), w, rtol=1e-12)


def test_norm_of_gradients_is_limited() -> None:
    g = gradient(0)
    expected = START - 0.5 * g * min(1.0, 0.3 / (np.linalg.norm(g) + 1e-6))
    np.testing.assert_allclose(trained(SGD(0.5, clip_norm=0.3), 1), expected, rtol=1e-12)


def test_elements_of_gradients_are_limited() -> None:
    np.testing.assert_allclose(
        trained(SGD(0.5, clip_value=0.4), 1), START - 0.5 * np.clip(gradient(0), -0.4, 0.4), rtol=1e-12
    )


SCHEDULES: dict[str, tuple[Schedule, list[float]]] = {
    "constant": (schedules.Constant(), [1, 1, 1, 1, 1, 1]),
    "warm-up": (schedules.WarmUp(4), [0.25, 0.5, 0.75, 1, 1, 1]),
    "linear": (schedules.Linear(4, 0.2), [1, 0.8, 0.6, 0.4, 0.2, 0.2]),
    "cosine": (schedules.Cosine(4), [1, 0.5 + 0.5 * 0.5**0.5, 0.5, 0.5 - 0.5 * 0.5**0.5, 0, 0]),
    "steps": (schedules.StepDecay(2, 0.1), [1, 1, 0.1, 0.1, 0.01, 0.01]),
    "exponential": (schedules.Exponential(0.5), [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
    "polynomial": (schedules.Polynomial(4, 2), [1, 0.5625, 0.25, 0.0625, 0, 0]),
    "inverse root": (schedules.InverseRoot(2), [1, 1, (2 / 3) ** 0.5, 0.5**0.5, 0.4**0.5, (1 / 3) ** 0.5]),
    "product": (schedules.WarmUp(2) * schedules.Exponential(0.5), [0.5, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name: str) -> None:
    schedule, factors = SCHEDULES[name]
    session = TrainingSession(
        weighted_sum(np.zeros(1)), loss="output", optimizer=SGD(1.0, schedule=schedule), cache=False
    )
    found: list[float] = []
    for _ in factors:
        before = session.weights()["w"][0]
        session.step({"x": np.ones(1)})
        found.append(before - session.weights()["w"][0])
    np.testing.assert_allclose(found, factors, rtol=1e-9, atol=1e-12)


def test_rate_may_be_set_between_steps() -> None:
    session = TrainingSession(weighted_sum(np.zeros(1)), loss="output", optimizer=SGD(1.0), cache=False)
    session.step({"x": np.ones(1)})
    session.learning_rate = 0.25
    assert session.learning_rate == 0.25
    session.step({"x": np.ones(1)})
    np.testing.assert_allclose(session.weights()["w"], [-1.25])


def test_optimizers_say_what_they_keep() -> None:
    assert set(AdamW().kept()) == {"moment1", "moment2"}
    assert not SGD().kept()

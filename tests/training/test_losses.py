"""Losses are what their formulas say, and their gradients what these imply."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import Graph, check_gradients, differentiated, gradient_module

from glow_mlir.errors import OptionError
from glow_mlir.interpreter.machine import run_function
from glow_mlir.interpreter.predicate import honoured_predicates
from glow_mlir.training import losses
from glow_mlir.training.losses import CrossEntropy, Loss

RNG = np.random.default_rng(29)
Y = RNG.standard_normal((4, 5))
T = RNG.standard_normal((4, 5))
P, Q = 1 / (1 + np.exp(-Y)), 1 / (1 + np.exp(-T))
LABELS = np.array([1, 4, 0, 3])
LOGARITHMS = Y - np.log(np.exp(Y).sum(1, keepdims=True))


def huber(distance: np.ndarray, delta: float) -> np.ndarray:
    return np.where(distance <= delta, distance**2 / 2, delta * (distance - delta / 2))


CASES: dict[str, tuple[Loss, np.ndarray, np.ndarray, float]] = {
    "mse": (losses.MeanSquaredError(), Y, T, ((Y - T) ** 2).mean()),
    "mse, sum": (losses.MeanSquaredError("sum"), Y, T, ((Y - T) ** 2).sum()),
    "l1": (losses.MeanAbsoluteError(), Y, T, abs(Y - T).mean()),
    "huber": (losses.HuberLoss(delta=0.7), Y, T, huber(abs(Y - T), 0.7).mean()),
    "bce": (losses.BinaryCrossEntropy(), P, Q, -(Q * np.log(P) + (1 - Q) * np.log(1 - P)).mean()),
    "bce with logits": (
        losses.BinaryCrossEntropyWithLogits(),
        Y,
        Q,
        -(Q * np.log(P) + (1 - Q) * np.log(1 - P)).mean(),
    ),
    "kl": (losses.KullbackLeiblerDivergence(), np.log(P), Q, (Q * (np.log(Q) - np.log(P))).mean()),
    "kl of a target 0": (losses.KullbackLeiblerDivergence("sum"), np.log(P), Q * 0, 0.0),
    "cross-entropy": (CrossEntropy(), Y, LABELS, -LOGARITHMS[range(4), LABELS].mean()),
    "cross-entropy, sum": (CrossEntropy("sum"), Y, LABELS, -LOGARITHMS[range(4), LABELS].sum()),
    "cross-entropy of probabilities": (
        CrossEntropy(probabilities=True),
        Y,
        Q / Q.sum(1, keepdims=True),
        -(LOGARITHMS * Q / Q.sum(1, keepdims=True)).sum(1).mean(),
    ),
    "cross-entropy, ignored": (
        CrossEntropy(),
        Y,
        np.array([1, -100, 0, -100]),
        -LOGARITHMS[[0, 2], [1, 0]].mean(),
    ),
    "cross-entropy, ignored class": (CrossEntropy(ignore_index=4), Y, LABELS, -LOGARITHMS[[0, 2, 3], [1, 0, 3]].mean()),
    "cross-entropy, nothing counts": (CrossEntropy(), Y, np.full(4, -100), 0.0),
    "cross-entropy, smoothed": (
        CrossEntropy(label_smoothing=0.2),
        Y,
        LABELS,
        -(0.8 * LOGARITHMS[range(4), LABELS] + 0.2 * LOGARITHMS.mean(1)).mean(),
    ),
    "cross-entropy of rows": (
        CrossEntropy(axis=-1),
        Y.reshape(2, 2, 5),
        LABELS.reshape(2, 2),
        -LOGARITHMS[range(4), LABELS].mean(),
    ),
    "cross-entropy of images": (
        CrossEntropy(),
        Y.reshape(2, 2, 5).swapaxes(1, 2).copy(),
        LABELS.reshape(2, 2),
        -LOGARITHMS[range(4), LABELS].mean(),
    ),
}


def graph_of(loss: Loss) -> Graph:
    """The graph of a loss of the inputs `x` and `t`."""
    return lambda emit, values: loss.emitted(values["x"], values["t"], emit)


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient(name: str) -> None:
    loss, y, t, expected = CASES[name]
    results = check_gradients(graph_of(loss), {"x": y, "t": t}, ["x"])
    np.testing.assert_allclose(results["y"], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("cross-entropy")])
def test_samples_that_do_not_count_are_not_looked_at(name: str) -> None:
    """With predicates honoured, what computes them may give NaN."""
    loss, y, t, _ = CASES[name]
    module, inputs = gradient_module(graph_of(loss), {"x": y, "t": t}, ["x"]), {"x": y, "t": t}
    ignored = run_function(differentiated(module), inputs)
    with honoured_predicates():
        found = run_function(module, inputs)
    for output, expected in ignored.items():
        np.testing.assert_array_equal(found[output], expected)


def test_logits_far_out_are_finite() -> None:
    y = np.array([[1e4, -1e4], [-1e4, 1e4]])
    results = check_gradients(graph_of(losses.BinaryCrossEntropyWithLogits()), {"x": y, "t": np.ones((2, 2))}, ["x"])
    np.testing.assert_allclose(results["y"], 5e3)


@pytest.mark.parametrize(("y", "t"), [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0)])
def test_probabilities_at_their_ends_have_finite_gradients(y: float, t: float) -> None:
    inputs = {"x": np.array([[y]]), "t": np.array([[t]])}
    results = run_function(
        differentiated(gradient_module(graph_of(losses.BinaryCrossEntropy()), inputs, ["x"])), inputs
    )
    np.testing.assert_allclose(results["y"], 100.0 * (y != t))
    assert np.isfinite(results["dx"]).all()


def test_logit_of_minus_infinity_is_a_class_that_is_not_there() -> None:
    y = Y.copy()
    y[:, 2] = -np.inf
    inputs = {"x": y, "t": LABELS}
    results = run_function(differentiated(gradient_module(graph_of(CrossEntropy()), inputs, ["x"])), inputs)
    expected = y - np.log(np.exp(y).sum(1, keepdims=True))
    np.testing.assert_allclose(results["y"], -expected[range(4), LABELS].mean())
    assert np.isfinite(results["dx"]).all()


def test_classes_that_there_are_not_do_not_count() -> None:
    labels = np.array([1, 7, 0, -3])
    results = check_gradients(graph_of(CrossEntropy(label_smoothing=0.1)), {"x": Y, "t": labels}, ["x"])
    expected = -(0.9 * LOGARITHMS[[0, 2], [1, 0]] + 0.1 * LOGARITHMS[[0, 2]].mean(1)).mean()
    np.testing.assert_allclose(results["y"], expected)


def test_half_floats_are_summed_in_f32() -> None:
    inputs = {"x": np.zeros((70_000, 2), np.float16), "t": np.zeros(70_000, np.int64)}
    results = run_function(differentiated(gradient_module(graph_of(CrossEntropy()), inputs, [])), inputs)
    np.testing.assert_allclose(results["y"], np.log(2.0), rtol=1e-3)


def test_unknown_reduction_is_told() -> None:
    with pytest.raises(OptionError, match="no reduction 'none'"):
        losses.MeanSquaredError("none")

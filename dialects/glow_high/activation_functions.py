"""Activation functions as scalar code, for the elementwise operators and for the gates of recurrent networks."""

from __future__ import annotations

from collections.abc import Callable

from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.support.dataclass import dataclass


def relu(b: ScalarBuilder, x: Scalar) -> Scalar:
    """max(x, 0)."""
    return b.maximum(x, 0)


def sigmoid(b: ScalarBuilder, x: Scalar) -> Scalar:
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + b.unary("exp", -x))


def leaky_relu(b: ScalarBuilder, x: Scalar, alpha: float) -> Scalar:
    """x, below zero alpha·x."""
    return b.select(x < 0.0, x * alpha, x)


def elu(b: ScalarBuilder, x: Scalar, alpha: float) -> Scalar:
    """x, below zero alpha·(exp(x) - 1)."""
    return b.select(x < 0.0, b.unary("expm1", x) * alpha, x)


def hard_sigmoid(b: ScalarBuilder, x: Scalar, alpha: float, beta: float) -> Scalar:
    """alpha·x + beta, limited to [0, 1]."""
    return b.clamp(x * alpha + beta, 0.0, 1.0)


def thresholded_relu(b: ScalarBuilder, x: Scalar, alpha: float) -> Scalar:
    """x where it exceeds alpha, else 0."""
    return b.select(x > alpha, x, 0.0)


def softplus(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(1 + exp(x)), without overflow for large x."""
    return b.maximum(x, 0.0) + b.unary("log1p", b.unary("exp", -b.unary("abs", x)))


def softsign(b: ScalarBuilder, x: Scalar) -> Scalar:
    """x / (1 + |x|)."""
    return x / (b.unary("abs", x) + 1.0)


@dataclass(frozen=True)
class GateFunction:
    """A function that a gate of a recurrent network may apply, with the defaults of its parameters."""

    build: Callable[[ScalarBuilder, Scalar, float, float], Scalar]
    alpha: float | None = None
    """The default of the first parameter; `None` where the function has none."""
    beta: float | None = None


GATE_FUNCTIONS: dict[str, GateFunction] = {
    "affine": GateFunction(lambda b, x, alpha, beta: x * alpha + beta, 1.0, 0.0),
    "elu": GateFunction(lambda b, x, alpha, beta: elu(b, x, alpha), 1.0),
    "hard_sigmoid": GateFunction(hard_sigmoid, 0.2, 0.5),
    "leaky_relu": GateFunction(lambda b, x, alpha, beta: leaky_relu(b, x, alpha), 0.01),
    "relu": GateFunction(lambda b, x, alpha, beta: relu(b, x)),
    "scaled_tanh": GateFunction(lambda b, x, alpha, beta: b.unary("tanh", x * beta) * alpha, 1.0, 1.0),
    "sigmoid": GateFunction(lambda b, x, alpha, beta: sigmoid(b, x)),
    "softplus": GateFunction(lambda b, x, alpha, beta: softplus(b, x)),
    "softsign": GateFunction(lambda b, x, alpha, beta: softsign(b, x)),
    "tanh": GateFunction(lambda b, x, alpha, beta: b.unary("tanh", x)),
    "thresholded_relu": GateFunction(lambda b, x, alpha, beta: thresholded_relu(b, x, alpha), 1.0),
}
"""Name of a gate function → the function."""

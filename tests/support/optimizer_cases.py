"""Optimizers, and what 50 steps of PyTorch's make of a parameter with the same gradients."""

from __future__ import annotations

import numpy as np

from glow_mlir.training.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop

STEPS = 50
"""Steps of each case."""
START = np.array([[1.0, -0.5, 0.25], [0.0, 2.0, -1.5]])
"""The parameter before them."""


def gradient(step: int) -> np.ndarray:
    """The gradient of a step, from 0."""
    return np.sin(np.arange(6.0) * 1.7 + step * 0.31).reshape(2, 3) * (1 + 0.1 * np.cos(step))


CASES: dict[str, tuple[Optimizer, str, dict[str, object]]] = {
    "sgd": (SGD(0.05), "SGD", {"lr": 0.05}),
    "sgd, weight decay": (SGD(0.05, weight_decay=0.1), "SGD", {"lr": 0.05, "weight_decay": 0.1}),
    "sgd, momentum": (SGD(0.05, momentum=0.9), "SGD", {"lr": 0.05, "momentum": 0.9}),
    "sgd, dampening": (
        SGD(0.05, momentum=0.9, dampening=0.3),
        "SGD",
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.3},
    ),
    "sgd, nesterov": (
        SGD(0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
        "SGD",
        {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ),
    "adam": (Adam(0.02), "Adam", {"lr": 0.02}),
    "adam, weight decay": (Adam(0.02, weight_decay=0.1), "Adam", {"lr": 0.02, "weight_decay": 0.1}),
    "adam, amsgrad": (Adam(0.02, amsgrad=True), "Adam", {"lr": 0.02, "amsgrad": True}),
    "adamw": (AdamW(0.02, weight_decay=0.05), "AdamW", {"lr": 0.02, "weight_decay": 0.05}),
    "adagrad": (Adagrad(0.1), "Adagrad", {"lr": 0.1}),
    "adagrad, decay": (
        Adagrad(0.1, rate_decay=0.1, initial_accumulator=0.5, weight_decay=0.01),
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.01},
    ),
    "rmsprop": (RMSprop(0.01), "RMSprop", {"lr": 0.01}),
    "rmsprop, centered": (
        RMSprop(0.01, centered=True, momentum=0.5, weight_decay=0.01),
        "RMSprop",
        {"lr": 0.01, "centered": True, "momentum": 0.5, "weight_decay": 0.01},
    ),
}
"""Name → an optimizer, the class of `torch.optim` that is like it, and its parameters there."""

LAMB_CASE = LAMB(0.02, weight_decay=0.05)
"""An optimizer that PyTorch does not have."""

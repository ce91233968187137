"""A perceptron for servers of others: by onnxruntime where it is installed, or else by numpy."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

MODEL, WEIGHTS = "batches.onnx", "mlp.npz"
"""The files of a model for any batch, and of its matrices and biases by number, in one folder."""


def perceptron(folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    """The model in a folder as a function, on one thread."""
    try:
        runtime: Any = import_module("onnxruntime")
    except ImportError:
        return _by_numpy(folder)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(str(folder / MODEL), options, providers=["CPUExecutionProvider"])

    def run(x: np.ndarray) -> np.ndarray:
        return session.run(None, {"x": x})[0]

    return run


def _by_numpy(folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    with np.load(folder / WEIGHTS) as weights:
        layers = [(weights[f"w{number}"], weights[f"b{number}"]) for number in range(len(weights.files) // 2)]

    def run(x: np.ndarray) -> np.ndarray:
        for matrix, bias in layers:
            x = np.maximum(x @ matrix + bias, 0)
        return x

    return run

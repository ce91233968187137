"""LiteRT: its default kernels, which are XNNPACK's where it has them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner


class _LiteRT:
    def __init__(self, interpreter: Any, inputs: Arrays) -> None:
        self._interpreter = interpreter
        # The inputs of a workload are in the order of the file.
        for detail, array in zip(interpreter.get_input_details(), inputs.values(), strict=True):
            interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), inputs.values(), strict=True):
            interpreter.set_tensor(detail["index"], array)

    def call(self) -> None:
        self._interpreter.invoke()

    def outputs(self) -> list[np.ndarray]:
        return [self._interpreter.get_tensor(detail["index"]) for detail in self._interpreter.get_output_details()]


def load(job: Job, inputs: Arrays) -> Runner:
    """Load the model with the default kernels."""
    engine: Any = import_module("ai_edge_litert.interpreter")
    return _LiteRT(engine.Interpreter(job.model, num_threads=job.threads), inputs)

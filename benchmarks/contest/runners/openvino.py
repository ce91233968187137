"""OpenVINO: the CPU plugin with the hint for latency, in 32-bit floats."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner


class _OpenVino:
    def __init__(self, engine: Any, compiled: Any, inputs: Arrays) -> None:
        self._request = compiled.create_infer_request()
        self._inputs = inputs  # The tensors only refer to the arrays.
        for name, array in inputs.items():
            self._request.set_tensor(name, engine.Tensor(array, shared_memory=True))
        self._count = len(compiled.outputs)

    def call(self) -> None:
        self._request.infer()

    def outputs(self) -> list[np.ndarray]:
        return [np.array(self._request.get_output_tensor(index).data) for index in range(self._count)]


def load(job: Job, inputs: Arrays) -> Runner:
    """Compile the model."""
    engine: Any = import_module("openvino")
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": job.threads,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    return _OpenVino(engine, engine.Core().compile_model(job.model, "CPU", settings), inputs)

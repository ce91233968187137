"""glow-mlir: the session's machine code on kept arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contest.engines import TFLITE_FILE
from contest.job import Arrays, Job, Runner
from glow_mlir import InferenceSession
from glow_mlir.frontends.tflite.model import TfliteModel


class _Glow:
    def __init__(self, session: InferenceSession, inputs: Arrays) -> None:
        self._entry = session.machine_entry
        self._bound: list[np.ndarray] = []
        self._outputs: list[np.ndarray] = []
        for binding in self._entry.bindings:
            array = inputs[binding.name] if binding.role == "input" else np.zeros(binding.shape, binding.dtype)
            self._bound.append(array)
            if binding.role == "output":
                self._outputs.append(array)

    def call(self) -> None:
        self._entry.call(self._bound)

    def outputs(self) -> list[np.ndarray]:
        return self._outputs


def load(job: Job, inputs: Arrays, accuracy: str = "default") -> Runner:
    """Compile the model, without the cache of artifacts; a file of TensorFlow Lite keeps its sizes."""
    path = Path(job.model)
    sizes = TfliteModel(path).default_sizes() if path.suffix == TFLITE_FILE else {}
    session = InferenceSession(path, threads=job.threads, cache=False, accuracy=accuracy, dimensions=sizes)
    return _Glow(session, inputs)

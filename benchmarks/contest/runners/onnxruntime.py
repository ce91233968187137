"""ONNX Runtime: the CPU provider, inputs and outputs bound."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner


class _OnnxRuntime:
    def __init__(self, session: Any, inputs: Arrays) -> None:
        self._session = session
        self._binding = session.io_binding()
        for name, array in inputs.items():
            self._binding.bind_cpu_input(name, array)
        for output in session.get_outputs():
            self._binding.bind_output(output.name, "cpu")
        # The first call finds the shapes; from then on the outputs stay where they are.
        session.run_with_iobinding(self._binding)
        for output, value in zip(session.get_outputs(), self._binding.get_outputs(), strict=True):
            self._binding.bind_ortvalue_output(output.name, value)

    def call(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def outputs(self) -> list[np.ndarray]:
        return self._binding.copy_outputs_to_cpu()


def load(job: Job, inputs: Arrays) -> Runner:
    """Load the model with all optimizations, which is the default."""
    engine: Any = import_module("onnxruntime")
    options = engine.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.inter_op_num_threads = 1
    return _OnnxRuntime(engine.InferenceSession(job.model, options, providers=["CPUExecutionProvider"]), inputs)

"""PyTorch's inductor with frozen weights, on a module that runs the ONNX graph node by node."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner


class _Inductor:
    def __init__(self, torch: Any, compiled: Any, inputs: Arrays) -> None:
        self._guard = torch.inference_mode
        self._compiled = compiled
        self._inputs = [torch.from_numpy(array) for array in inputs.values()]
        self._results: Any = None

    def call(self) -> None:
        with self._guard():
            self._results = self._compiled(*self._inputs)

    def outputs(self) -> list[np.ndarray]:
        return [result.numpy() for result in self._results]


def load(job: Job, inputs: Arrays) -> Runner:
    """Compile the model; what inductor kept of other runs is not used."""
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    torch: Any = import_module("torch")
    settings: Any = import_module("torch._inductor.config")
    onnx: Any = import_module("onnx")
    from contest.torch_module import Graph

    dynamo: Any = import_module("torch._dynamo.config")
    settings.freezing = True
    dynamo.allow_rnn = True
    dynamo.specialize_float = True  # The numbers of the graph never change; attention has to see that.
    torch.set_num_threads(job.threads)
    module = Graph(onnx.load(job.model)).eval()
    return _Inductor(torch, torch.compile(module, fullgraph=True), inputs)

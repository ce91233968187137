"""XLA's compiler for processors, by JAX, on a function that computes the ONNX graph node by node."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner


class _Xla:
    def __init__(self, compiled: Any, weights: Any, inputs: Any) -> None:
        self._compiled, self._weights, self._inputs = compiled, weights, inputs
        self._results: Any = None

    def call(self) -> None:
        self._results = self._compiled(self._weights, self._inputs)
        for result in self._results:
            result.block_until_ready()

    def outputs(self) -> list[np.ndarray]:
        return [np.asarray(result) for result in self._results]


def load(job: Job, inputs: Arrays) -> Runner:
    """Compile the model; weights and inputs are on the device before the first call."""
    # XLA computes with as many threads as the process has cores, which are those of the job.
    flags = "--xla_cpu_multi_thread_eigen=false" if job.threads == 1 else ""
    os.environ["XLA_FLAGS"], os.environ["JAX_PLATFORMS"] = flags, "cpu"
    jax: Any = import_module("jax")
    onnx: Any = import_module("onnx")
    from contest.jax_graph import Graph

    graph = Graph(onnx.load(job.model))
    weights = {name: jax.device_put(array) for name, array in graph.weights.items()}
    values = [jax.device_put(inputs[name]) for name in graph.inputs]
    return _Xla(jax.jit(graph).lower(weights, values).compile(), weights, values)

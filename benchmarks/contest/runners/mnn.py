"""MNN: converted by its own converter; `precision=high` is 32-bit floats."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner

CONVERT = "import sys, _tools; _tools.mnnconvert(['mnnconvert', *sys.argv[1:]])"
"""
The converter alone. The program `mnnconvert` would import a module that reports its use to its makers, and that has
whatever pip is on the path install what it needs for that.
"""

OPTIONS = ("--useOriginRNNImpl",)
"""Recurrent layers stay operators of MNN's; its converter crashes where it makes loops of them."""


def prepare(job: Job) -> None:
    """Convert the model."""
    target = job.converted("model.mnn")
    if target.exists():
        return
    part = job.converted("model.part.mnn")
    options = ["-f", "ONNX", "--modelFile", job.model, "--MNNModel", str(part), "--bizCode", "peers", *OPTIONS]
    result = subprocess.run([sys.executable, "-c", CONVERT, *options], capture_output=True, text=True)
    sys.stderr.write(result.stdout + result.stderr)
    if result.returncode or not part.exists():
        lines = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        raise RuntimeError(f"mnnconvert returned {result.returncode}: {lines[-1] if lines else 'no output'}")
    part.rename(target)


class _Mnn:
    def __init__(self, engine: Any, net: Any, inputs: Arrays) -> None:
        self._net = net
        self._engine = engine
        self._inputs = [self._variable(array) for array in inputs.values()]
        self._results: list[Any] = []
        self._arrays: list[np.ndarray] = []

    def _variable(self, array: np.ndarray) -> Any:
        """A variable of MNN in the layout of ONNX; whole numbers have 32 bits."""
        expr = self._engine.expr
        kind = expr.float if array.dtype.kind == "f" else expr.int
        data = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        variable = expr.placeholder(list(array.shape), expr.NCHW, kind)
        variable.write(data)
        return variable

    def call(self) -> None:
        self._results = self._net.forward(self._inputs)
        # Evaluation is lazy: to read is to compute.
        self._arrays = [result.read() for result in self._results]

    def outputs(self) -> list[np.ndarray]:
        convert = self._engine.expr.convert
        return [np.array(convert(result, self._engine.expr.NCHW).read()) for result in self._results]


def load(job: Job, inputs: Arrays) -> Runner:
    """Load the converted model."""
    engine: Any = import_module("MNN")
    nn: Any = import_module("MNN.nn")
    settings = {"backend": "CPU", "numThread": job.threads, "precision": "high"}
    manager = nn.create_runtime_manager((settings,))
    net = nn.load_module_from_file(str(job.converted("model.mnn")), list(inputs), job.outputs, runtime_manager=manager)
    return _Mnn(engine, net, inputs)

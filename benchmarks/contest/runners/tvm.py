"""TVM: the default pipeline of Relax for this processor, untuned."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner


class _Tvm:
    def __init__(self, engine: Any, machine: Any, inputs: Arrays) -> None:
        self._machine = machine
        self._inputs = [engine.runtime.tensor(array) for array in inputs.values()]
        self._result: Any = None

    def call(self) -> None:
        self._result = self._machine["main"](*self._inputs)

    def outputs(self) -> list[np.ndarray]:
        single = hasattr(self._result, "numpy")
        return [self._result.numpy()] if single else [item.numpy() for item in self._result]


def load(job: Job, inputs: Arrays) -> Runner:
    """Compile the model."""
    os.environ["TVM_NUM_THREADS"] = str(job.threads)
    onnx: Any = import_module("onnx")
    engine: Any = import_module("tvm")
    relax: Any = import_module("tvm.relax")
    frontend: Any = import_module("tvm.relax.frontend.onnx")
    codegen: Any = import_module("tvm.target.codegen")
    target = engine.target.Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu()})
    module = frontend.from_onnx(onnx.load(job.model), keep_params_in_input=False)
    executable = relax.build(module, target)
    return _Tvm(engine, relax.VirtualMachine(executable, engine.cpu()), inputs)

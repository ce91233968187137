"""IREE: `llvm-cpu` for this processor at the highest level, untuned."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    # With vectors of 512 bits its attention takes more of the stack than the default of 32 KiB.
    "--iree-llvmcpu-stack-allocation-limit=1048576",
)


class _Iree:
    def __init__(self, runtime: Any, function: Any, device: Any, inputs: Arrays) -> None:
        self._function = function
        self._inputs = [runtime.asdevicearray(device, array) for array in inputs.values()]
        self._result: Any = None

    def call(self) -> None:
        self._result = self._function(*self._inputs)

    def outputs(self) -> list[np.ndarray]:
        single = hasattr(self._result, "to_host")
        return [np.array(array.to_host()) for array in ([self._result] if single else self._result)]


def run_tool(name: str, *arguments: str) -> None:
    """Run a program of IREE's; raises `RuntimeError` with its last words."""
    command = [str(Path(sys.executable).parent / name), *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    sys.stderr.write(result.stderr)
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if "error" in line.lower()] or ["no message"]
        raise RuntimeError(f"{name}: {lines[0][:300]}")


def load(job: Job, inputs: Arrays) -> Runner:
    """Import and compile the model; nothing is kept from one run to the next."""
    text, binary = job.converted("model.mlir"), job.converted("model.vmfb")
    run_tool("iree-import-onnx", job.model, "-o", str(text), "--opset-version", "17")
    run_tool("iree-compile", str(text), "-o", str(binary), *FLAGS)
    runtime: Any = import_module("iree.runtime")
    if job.threads > 1:
        runtime.flags.parse_flags(f"--task_topology_group_count={job.threads}")
    config = runtime.Config("local-sync" if job.threads == 1 else "local-task")
    module = runtime.VmModule.mmap(config.vm_instance, str(binary))
    loaded = runtime.load_vm_module(module, config)
    (name,) = (name for name in module.function_names if not name.startswith("__") and not name.endswith("$async"))
    return _Iree(runtime, loaded[name], config.device, inputs)

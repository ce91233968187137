"""The backend of `examples/tosa_backend` in this process, and Arm's programs where they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from checkout import ROOT
from tosa_backend.backend import TosaBackend
from tosa_backend.convert import ConvertToTosaPass
from tosa_backend.device import TosaFunction
from tosa_backend.tools import FOLDER, MODEL, OPT
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession, Quantization
from glow_mlir.dialects.packages import REFERENCE_BACKEND
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import PLUGINS, Pipeline
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.registry import BACKENDS

NAME = TosaBackend.name

BACKENDS.all().pop(NAME, None)  # Which backends there are is no matter of other tests.

INSTALLED = ROOT / ".tosa-tools" / "bin"
"""Where `make tosa-tools` installs Arm's programs."""

Arrays = Mapping[str, np.ndarray]


def offer_tosa(patch: pytest.MonkeyPatch) -> None:
    """Let this process know the backend, and its pass, as an installed package does."""
    patch.setitem(BACKENDS.all(), NAME, TosaBackend)
    patch.setitem(PLUGINS, ConvertToTosaPass.name, lambda: ConvertToTosaPass)


def need_tools(patch: pytest.MonkeyPatch, *programs: str) -> None:
    """Skip a test where programs of Arm's are missing; those of `make tosa-tools` are found."""
    if FOLDER not in os.environ:
        patch.setenv(FOLDER, str(INSTALLED))
    missing = [name for name in programs or (OPT, MODEL) if shutil.which(name, path=os.environ[FOLDER]) is None]
    if missing:
        pytest.skip(f"there is no {', '.join(missing)}: make tosa-tools")


def compiled(module: ModuleOp, pipeline: Pipeline | None = None) -> TosaFunction:
    """The only function of a module, each pass on the way verified; `pipeline` takes the place of the backend's."""
    (function,) = Compilation(module, NAME, runner=PassRunner(verify_each=True), pipeline=pipeline).artifact().functions
    return function


def operations(function: TosaFunction) -> list[str]:
    """The operations of a program by name, without constants."""
    names = [op.name.removeprefix("tosa.") for op in function.program.body.block.ops]
    return [name for name in names if name not in ("const", "const_shape", "func.return")]


def on_device(module: ModuleOp, inputs: Arrays) -> dict[str, np.ndarray]:
    """What the reference model computes of a module with one function, and the state behind it."""
    artifact = Compilation(module, NAME, runner=PassRunner(verify_each=True)).artifact()
    device = TosaBackend().load(artifact, 1)
    given = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
    state = {
        binding.name
        for function in artifact.functions
        for binding in function.bindings.values()
        if binding.role == "state"
    }
    device.state.set({name: array for name, array in given.items() if name in state})
    return {**device.entry().run(given), **device.state.get()}


def by_interpreter(module: ModuleOp, inputs: Arrays, results: Sequence[str]) -> dict[str, np.ndarray]:
    """What the interpreter computes of it."""
    found = run_function(module, dict(inputs))
    return {name: found[name] for name in results}


def pair(model: onnx.ModelProto, quantize: Quantization | None = None) -> tuple[InferenceSession, InferenceSession]:
    """A session on the device, and one of the interpreter that rounds codes by integers as well."""
    data = model.SerializeToString()
    device = InferenceSession(data, backend=NAME, quantize=quantize)
    target = "host,requantization=integer"
    return device, InferenceSession(data, backend=REFERENCE_BACKEND, target=target, quantize=quantize)

"""ncnn: converted by pnnx, in 32-bit floats; Winograd and packed layouts stay on, as they are by default."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from contest.job import Arrays, Job, Runner

PNNX_TYPES = {"float32": "f32", "int64": "i64", "int32": "i32"}


def prepare(job: Job) -> None:
    """Convert the model with pnnx, without half-precision weights."""
    if job.converted("model.ncnn.bin").exists():
        return
    link = job.converted("model.onnx")
    link.unlink(missing_ok=True)
    link.symlink_to(job.model)
    with np.load(job.inputs) as inputs:
        shapes = ",".join(
            f"[{','.join(map(str, inputs[name].shape))}]{PNNX_TYPES[inputs[name].dtype.name]}" for name in inputs.files
        )
    program = Path(sys.executable).parent / "pnnx"
    command = [str(program), link.name, "fp16=0", f"inputshape={shapes}"]
    result = subprocess.run(command, cwd=job.folder, capture_output=True, text=True)
    sys.stderr.write(result.stdout + result.stderr)
    if result.returncode or not job.converted("model.ncnn.bin").exists():
        lines = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        raise RuntimeError(f"pnnx returned {result.returncode}: {lines[-1] if lines else 'no output'}")
    refuse_leftovers(job.converted("model.ncnn.param"))


def refuse_leftovers(path: Path) -> None:
    """Raise `RuntimeError` where operators of pnnx or of ATen are left, which ncnn does not have."""
    kinds = {line.split()[0] for line in path.read_text().splitlines()[2:] if line.strip()}
    if left := sorted(kind for kind in kinds if "." in kind or "::" in kind):
        path.with_name("model.ncnn.bin").unlink()
        raise RuntimeError(f"pnnx leaves what ncnn does not have: {', '.join(left)}")


def _without_batch(array: np.ndarray) -> np.ndarray:
    """The array as ncnn wants it: without dimensions of a batch of one, whole numbers in 32 bits."""
    plain = array if array.dtype.kind == "f" else array.astype(np.int32)
    return np.ascontiguousarray(plain[0] if plain.ndim > 3 else plain.squeeze())


class _Ncnn:
    def __init__(self, engine: Any, net: Any, inputs: Arrays, outputs: list[str]) -> None:
        self._net = net
        # A copy of its own: a `Mat` of an array only refers to it.
        self._inputs = [engine.Mat(_without_batch(array)).clone() for array in inputs.values()]
        self._names = [f"out{index}" for index in range(len(outputs))]
        self._results: list[Any] = []

    def call(self) -> None:
        extractor = self._net.create_extractor()
        for index, mat in enumerate(self._inputs):
            extractor.input(f"in{index}", mat)
        self._results = []
        for name in self._names:
            status, mat = extractor.extract(name)
            if status:
                raise RuntimeError(f"extracting '{name}' returned {status}")
            self._results.append(mat)

    def outputs(self) -> list[np.ndarray]:
        return [np.array(mat) for mat in self._results]


def load(job: Job, inputs: Arrays) -> Runner:
    """Load the converted model."""
    engine: Any = import_module("ncnn")
    net = engine.Net()
    net.opt.num_threads = job.threads
    net.opt.use_vulkan_compute = False
    for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, name, False)
    for kind, load_file in (("param", net.load_param), ("bin", net.load_model)):
        if status := load_file(str(job.converted(f"model.ncnn.{kind}"))):
            raise RuntimeError(f"loading the .{kind} file returned {status}")
    return _Ncnn(engine, net, inputs, job.outputs)

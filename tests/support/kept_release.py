"""
Keeps what this version writes that users keep, for later ones to read: `python tests/support/kept_release.py`.

A folder of a version's name gets a small model, inputs and outputs of it, and a file of each format. It is run when a
version is released, and what it wrote is never changed. `tests/releases` reads all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from models import GraphBuilder, linear
from onnx import TensorProto

import glow_mlir
from glow_mlir.options.quantization import Quantization
from glow_mlir.quantization.configuration import Configuration
from glow_mlir.training import AdamW, CrossEntropy

FOLDER = Path(__file__).parents[1] / "releases"

TARGET = "sse2"
"""That of the bundle: each machine of x86-64 runs it."""

SERVED = {"queue": 50, "replicas": 2, "versions": "all"}

SIMULATED = {
    "stages": [{"name": "one", "device": "cpu", "seconds": {"fixed": 0.002, "per_row": 0.0001}}],
    "batch": {"size": 4, "delay": 0.001},
    "arrivals": {"rate": 100},
    "requests": 200,
}


def main() -> None:
    """Write the folder of this version."""
    folder = FOLDER / glow_mlir.__version__.partition("+")[0]
    folder.mkdir()
    inputs = write_model(folder / "model.onnx")
    np.savez(folder / "inputs.npz", x=inputs)
    session = glow_mlir.InferenceSession(folder / "model.onnx", cache=False)
    np.save(folder / "outputs.npy", session.run(None, {"x": inputs})[0])
    tool(folder, "glow_import", "model.onnx", "-o", "module.mlir")
    tool(folder, "glow_compile", "model.onnx", "-o", "bundle", "--target", TARGET)
    tool(folder, "glow_run", "model.onnx", "--profile", "--json", "seconds.json", "--iterations", "1", cache="cache")
    tool(folder, "glow_profile", "model.onnx", "--dataset", "inputs.npz", "--bins", "16", "-o", "profile.json")
    Configuration(Quantization(folder / "profile.json")).write(folder / "configuration.json")
    (folder / "placement.json").write_text(json.dumps({"cpu:1": ["second"]}))
    (folder / "simulation.json").write_text(json.dumps(SIMULATED))
    (folder / "net").mkdir()
    (folder / "net" / "config.json").write_text(json.dumps(SERVED))
    training = training_session(folder)
    training.step({"x": inputs, "targets": np.array([0, 2])})
    training.save(str(folder / "checkpoint.safetensors"))
    np.save(folder / "trained.npy", training.predict({"x": inputs})["y"])


def write_model(path: Path) -> np.ndarray:
    """Two layers, and inputs of them."""
    graph = GraphBuilder(0)
    hidden = graph.node("Relu", linear(graph, "x", 4, 8))
    weights = graph.weight(np.random.default_rng(1).standard_normal((8, 3), np.float32))
    model = graph.model({"x": (TensorProto.FLOAT, (2, 4))}, {graph.node("MatMul", hidden, weights): (2, 3)})
    last = model.graph.node[-1]
    last.name, last.output[0], model.graph.output[0].name = "second", "y", "y"
    onnx.save(model, path)
    return np.random.default_rng(2).standard_normal((2, 4), np.float32)


def training_session(folder: Path) -> glow_mlir.TrainingSession:
    """A session that trains the model."""
    optimizer = AdamW(learning_rate=0.1)
    return glow_mlir.TrainingSession(folder / "model.onnx", loss=CrossEntropy(), optimizer=optimizer)


def tool(folder: Path, name: str, *arguments: str, cache: str = "") -> None:
    """Run a tool in a folder, with a cache there, or none."""
    environment = {**os.environ, "GLOW_CACHE_DIR": str(folder / cache) if cache else os.devnull}
    command = [sys.executable, "-m", f"glow_mlir.tools.{name}", *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()

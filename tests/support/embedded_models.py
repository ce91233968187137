"""Networks of the size of microcontrollers, in floats and in codes of eight bits, compiled for any target."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import quantized_models
from models import GraphBuilder, he, mobilenet_v2, random_inputs
from onnx import TensorProto
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.api.profiling import profiled
from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation, Observer
from glow_mlir.driver.pipelines import ALLOCATED, Stage, quantizing
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.options.declaration import parameters
from glow_mlir.options.quantization import Quantization
from glow_mlir.runtime.artifact import Artifact

Arrays = Mapping[str, np.ndarray]

SAMPLES = 4
"""Inputs whose values decide how a network is quantized."""


def digits_network() -> onnx.ModelProto:
    """Two convolutions with pools, and a classifier of digits of 28x28 pixels, as in LeNet."""
    g = GraphBuilder(0)
    x = "image"
    for channels, outputs in ((1, 8), (8, 16)):
        weights = g.weight(he(g.rng, (outputs, channels, 3, 3), channels * 9))
        bias = g.weight((g.rng.standard_normal(outputs) * 0.1).astype(np.float32))
        x = g.node("Relu", g.node("Conv", x, weights, bias, pads=[1] * 4))
        x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    weights, bias = g.weight(he(g.rng, (10, 16 * 49), 16 * 49)), g.weight(np.zeros(10, np.float32))
    scores = g.node("Gemm", g.node("Flatten", x), weights, bias, transB=1)
    return g.model({"image": (TensorProto.FLOAT, [1, 1, 28, 28])}, {scores: [1, 10]}, opset=13)


def keyword_network() -> onnx.ModelProto:
    """An LSTM over 49 frames of 10 cepstral coefficients, and the probabilities of 12 keywords."""
    g = GraphBuilder(1)
    steps, width, hidden, words = 49, 10, 32, 12
    weights = [(4 * hidden, width), (4 * hidden, hidden), (8 * hidden,)]
    names = [g.weight((g.rng.uniform(-1, 1, (1, *w)) / np.sqrt(hidden)).astype(np.float32)) for w in weights]
    g.node("LSTM", "frames", *names, outputs=2, hidden_size=hidden)
    last = g.node("Squeeze", "lstm_0:1", g.weight(np.array([0], np.int64)))
    last_weights, bias = g.weight(he(g.rng, (hidden, words), hidden)), g.weight(np.zeros(words, np.float32))
    scores = g.node("Softmax", g.node("Gemm", last, last_weights, bias), axis=1)
    return g.model({"frames": (TensorProto.FLOAT, [steps, 1, width])}, {scores: [1, words]}, opset=14)


NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "digits": digits_network,
    "mobilenet": lambda: mobilenet_v2(size=96, classes=10, width=0.35),
    "keywords": keyword_network,
    "encoder": quantized_models.encoder,
}
"""Name → network. MobileNetV2 is that of 0.35 times the channels, for images of 96x96."""

PRECISIONS = ("float", "int8")


@dataclass(frozen=True)
class Compiled:
    """A network for one target: what runs, and the module before it became machine code."""

    artifact: Artifact
    allocated: ModuleOp

    def interpreted(self, inputs: Arrays) -> dict[str, np.ndarray]:
        """What the interpreter computes by the instructions of the allocated module."""
        return run_function(self.allocated, dict(inputs))


@cache
def network(name: str) -> onnx.ModelProto:
    """One of the networks."""
    return NETWORKS[name]()


@cache
def inputs_of(name: str, seed: int = 100) -> dict[str, np.ndarray]:
    """Random inputs of a network."""
    return random_inputs(network(name), np.random.default_rng(seed))


@cache
def _quantization(name: str) -> dict[str, str | bool | tuple[str, ...]]:
    """The options with which the pass `quantize` quantizes a network by the values of some inputs."""
    samples = [random_inputs(network(name), np.random.default_rng(seed)) for seed in range(SAMPLES)]
    path = Path(tempfile.mkdtemp()) / f"{name}.profile"
    profiled(network(name), samples, backend="interpreter").write(path)
    return parameters(Quantization(path))


def compiled(name: str, precision: str, target: str) -> Compiled:
    """A network compiled for what the CPU backend calls a target, which this machine need not be."""
    kept: list[ModuleOp] = []

    def keep(stage: Stage, module: ModuleOp, seconds: float) -> None:
        if stage.name == ALLOCATED.name:
            kept.append(module.clone())

    return Compiled(_compilation(name, precision, target, [keep]).artifact(), kept[0])


def lowered_to(name: str, precision: str, target: str, stage: str) -> ModuleOp:
    """A network at a stage of its way to machine code."""
    return _compilation(name, precision, target).run(stage)


def _compilation(name: str, precision: str, target: str, observers: Sequence[Observer] = ()) -> Compilation:
    pipeline = get_backend("cpu").pipeline(target)
    if precision == "int8":
        pipeline = quantizing(pipeline, _quantization(name))
    return Compilation(import_model(network(name)), "cpu", target, pipeline=pipeline, observers=observers)

"""
Weights of 4 bits: what rounding a trained network loses, and what training with rounded weights gets back.

Trains a small network of separable convolutions on scikit-learn's digits in floats, rounds it by a profile, and trains
it further with weights and values rounded in each step. Prints the accuracy of each on pictures that were held back.
Takes about a quarter of a minute.

    python examples/train_quantized_digits.py
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from train_digits import load

from glow_mlir import InferenceSession, Quantization, TrainingSession
from glow_mlir.api.profiling import profiled
from glow_mlir.training import Adam, Cosine
from glow_mlir.training.batches import ArraySamples, Batches
from glow_mlir.training.loop import fit

CHANNELS = (12, 24, 48)
BATCH = 64
SAMPLES = 256
"""Pictures that the network is profiled on."""


@dataclass
class Network:
    """A network of ONNX nodes, which grows at its end."""

    end: str = "image"
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def node(self, kind: str, name: str, *weights: str, **attributes: Any) -> None:
        """Add a node behind the last one."""
        self.nodes.append(helper.make_node(kind, [self.end, *weights], [f"{name}.y"], name=name, **attributes))
        self.end = f"{name}.y"

    def convolution(self, name: str, inputs: int, outputs: int, size: int, groups: int = 1, stride: int = 1) -> None:
        """Add a convolution, the normalization of its batch, and a ReLU."""
        shape = (outputs, inputs // groups, size, size)
        filters = self.generator.standard_normal(shape) * (2 * groups / (inputs * size * size)) ** 0.5
        normal = {"scale": np.ones(outputs), "shift": np.zeros(outputs), "mean": np.zeros(outputs)}
        normal["variance"] = np.ones(outputs)
        self.weights |= {f"{name}.w": filters} | {f"{name}.{part}": value for part, value in normal.items()}
        self.node("Conv", name, f"{name}.w", pads=[size // 2] * 4, group=groups, strides=[stride] * 2)
        self.node("BatchNormalization", f"{name}.norm", *(f"{name}.{part}" for part in normal))
        self.node("Relu", f"{name}.relu")

    def model(self) -> onnx.ModelProto:
        """The network from `image` to `logits`, with a free batch `N`."""
        graph = helper.make_graph(
            self.nodes,
            "separable_digits",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
            [helper.make_tensor_value_info(self.end, TensorProto.FLOAT, ["N", 10])],
            [numpy_helper.from_array(value.astype(np.float32), name) for name, value in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def separable() -> onnx.ModelProto:
    """A convolution, two pairs of a depthwise and a pointwise one, the mean of the picture, and a linear classifier."""
    network, (one, two, three) = Network(), CHANNELS
    network.convolution("stem", 1, one, 3)
    network.convolution("depthwise1", one, one, 3, groups=one)
    network.convolution("pointwise1", one, two, 1)
    network.convolution("depthwise2", two, two, 3, groups=two, stride=2)
    network.convolution("pointwise2", two, three, 1)
    network.node("GlobalAveragePool", "mean")
    network.node("Flatten", "flatten")
    classifier = network.generator.standard_normal((10, three)) / three**0.5
    network.weights |= {"classifier.w": classifier, "classifier.b": np.zeros(10)}
    network.node("Gemm", "classifier", "classifier.w", "classifier.b", transB=1)
    return network.model()


@dataclass(frozen=True)
class Trial:
    """The pictures, and the folder of what is trained on them."""

    folder: Path

    def train(self, model: onnx.ModelProto | Path, epochs: int, rate: float, quantization: Quantization | None) -> Path:
        """Train a model further, and write it; beside it lies its profile, if it was trained with one."""
        images, labels, _, _ = load()
        batches = Batches(ArraySamples({"image": images, "targets": labels.astype(np.int64)}), BATCH)
        optimizer = Adam(rate, schedule=Cosine(epochs * batches.per_epoch))
        session = TrainingSession(model, optimizer=optimizer, dimensions={"N": BATCH}, quantization=quantization)
        for _ in fit(session, batches, epochs):
            pass
        path = self.folder / ("floats.onnx" if quantization is None else "rounded.onnx")
        session.export(path, None if quantization is None else path.with_suffix(".json"))
        return path

    def profile(self, model: Path) -> Path:
        """The profile of a model on some of the pictures."""
        images, _, _, _ = load()
        path = model.with_suffix(".json")
        profiled(model, [{"image": images[:SAMPLES]}], dimensions={"N": SAMPLES}).write(path)
        return path

    def accuracy(self, model: Path, quantize: Quantization | None = None) -> float:
        """The share of the pictures held back that a model tells right."""
        _, _, images, labels = load()
        session = InferenceSession(model, dimensions={"N": len(images)}, quantize=quantize)
        return float((session.run(None, {"image": images})[0].argmax(1) == labels).mean())


def accuracies(folder: Path, epochs: tuple[int, int] = (40, 20)) -> dict[str, float]:
    """What was done → the share of pictures held back that is told right; `epochs` are those in floats and rounded."""
    trial = Trial(folder)
    floats = trial.train(separable(), epochs[0], 1e-2, None)
    options = Quantization(trial.profile(floats), weights="int4", bias_correction=False)
    rounded = trial.train(floats, epochs[1], 3e-3, options)
    return {
        "floats": trial.accuracy(floats),
        "weights of 8 bits": trial.accuracy(floats, Quantization(options.profile)),
        "weights of 4 bits": trial.accuracy(floats, options),
        "the same, with bias correction": trial.accuracy(floats, replace(options, bias_correction=True)),
        "the same, trained with them": trial.accuracy(rounded, replace(options, profile=rounded.with_suffix(".json"))),
    }


def main() -> None:
    """Print the accuracy of each form of the network."""
    with tempfile.TemporaryDirectory() as folder:
        for what, share in accuracies(Path(folder)).items():
            print(f"{what:32}{100 * share:6.2f}")


if __name__ == "__main__":
    main()

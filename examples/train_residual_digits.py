"""
Trains a residual network of 20 layers on the cluttered digits and writes it as ONNX.

The network is the ResNet-20 of He et al. (arXiv 1512.03385, §4.2), with 16, 32 and 48 channels and projections as
shortcuts, its batch normalizations written as they are. Training is plain numpy: cross-entropy, Adam, new pictures in
each epoch. Takes about ten minutes.

    python examples/train_residual_digits.py [residual_digits.onnx]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cluttered_digits import SIZE, held_out_set, training_set
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

CHANNELS = (16, 32, 48)
"""Channels of each stage; each but the first halves rows and columns."""

BLOCKS = 3
"""Blocks of two convolutions in each stage."""

EPOCHS, PICTURES, BATCH, RATE = 30, 6000, 64, 3e-3

MOMENTUM = 0.9
"""How much of the running statistics of batch normalization a step keeps."""

EPSILON = 1e-5


@dataclass
class Parameter:
    """An array that is trained, its gradient, and what Adam (arXiv 1412.6980) knows of it."""

    value: np.ndarray
    gradient: np.ndarray = field(init=False)
    first: np.ndarray = field(init=False)
    second: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.value = self.value.astype(np.float32)
        self.gradient, self.first, self.second = (np.zeros_like(self.value) for _ in range(3))

    def step(self, rate: float, count: int) -> None:
        """Change the value; `count` is the number of the step, from 1."""
        self.first = 0.9 * self.first + 0.1 * self.gradient
        self.second = 0.999 * self.second + 0.001 * self.gradient**2
        mean, square = self.first / (1 - 0.9**count), self.second / (1 - 0.999**count)
        self.value = (self.value - rate * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)


class Convolution:
    """A convolution without a bias: [N, H, W, C] to [N, H / stride, W / stride, K], padded to keep the size."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int, size: int, stride: int) -> None:
        self.inputs, self.size, self.stride = inputs, size, stride
        depth = size * size * inputs
        self.weights = Parameter(rng.standard_normal((depth, outputs)) * np.sqrt(2 / depth))
        self._shape: tuple[int, ...] = ()

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The result; what the gradient needs is kept."""
        edge = self.size // 2
        padded = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
        windows = sliding_window_view(padded, (self.size, self.size), axis=(1, 2))
        chosen = windows[:, :: self.stride, :: self.stride].transpose(0, 1, 2, 4, 5, 3)
        self._shape, self._cells = padded.shape, np.ascontiguousarray(chosen).reshape(-1, self.weights.value.shape[0])
        return (self._cells @ self.weights.value).reshape(*chosen.shape[:3], -1)

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient with regard to the operand, from that with regard to the result."""
        n, height, width, outputs = gradient.shape
        flat = gradient.reshape(-1, outputs)
        self.weights.gradient = self._cells.T @ flat
        cells = (flat @ self.weights.value.T).reshape(n, height, width, self.size, self.size, self.inputs)
        result, step = np.zeros(self._shape, np.float32), self.stride
        for row in range(self.size):
            for column in range(self.size):
                place = np.s_[:, row : row + step * height : step, column : column + step * width : step]
                result[place] += cells[:, :, :, row, column]
        edge = self.size // 2
        return result[:, edge : result.shape[1] - edge, edge : result.shape[2] - edge]

    def filters(self) -> np.ndarray:
        """The weights as ONNX has them, [K, C, size, size]."""
        shape = (self.size, self.size, self.inputs, self.weights.value.shape[1])
        return np.ascontiguousarray(self.weights.value.reshape(shape).transpose(3, 2, 0, 1))


class Normalization:
    """Batch normalization of the last axis."""

    def __init__(self, channels: int) -> None:
        self.scale, self.bias = Parameter(np.ones(channels)), Parameter(np.zeros(channels))
        self.mean, self.variance = np.zeros(channels, np.float32), np.ones(channels, np.float32)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The result by the statistics of the batch, which are added to the running ones."""
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        self.mean = MOMENTUM * self.mean + (1 - MOMENTUM) * mean
        self.variance = MOMENTUM * self.variance + (1 - MOMENTUM) * variance
        self._inverse = 1 / np.sqrt(variance + np.float32(EPSILON))
        self._normal = (x - mean) * self._inverse
        return self._normal * self.scale.value + self.bias.value

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient with regard to the operand."""
        self.scale.gradient, self.bias.gradient = (gradient * self._normal).sum((0, 1, 2)), gradient.sum((0, 1, 2))
        count = np.float32(gradient.size / gradient.shape[-1])
        centred = gradient - self.bias.gradient / count - self._normal * (self.scale.gradient / count)
        return centred * (self.scale.value * self._inverse)


class Unit:
    """A convolution and its normalization."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int, size: int = 3, stride: int = 1) -> None:
        self.convolution = Convolution(rng, inputs, outputs, size, stride)
        self.normalization = Normalization(outputs)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The normalized result of the convolution."""
        return self.normalization.forward(self.convolution.forward(x))

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient with regard to the operand."""
        return self.convolution.backward(self.normalization.backward(gradient))


class Block:
    """relu(second(relu(first(x))) + shortcut(x))."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int) -> None:
        stride = 1 if inputs == outputs else 2
        self.first, self.second = Unit(rng, inputs, outputs, stride=stride), Unit(rng, outputs, outputs)
        self.shortcut = None if stride == 1 else Unit(rng, inputs, outputs, size=1, stride=stride)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The result."""
        self._inner = np.maximum(self.first.forward(x), 0)
        around = x if self.shortcut is None else self.shortcut.forward(x)
        self._outer = np.maximum(self.second.forward(self._inner) + around, 0)
        return self._outer

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient with regard to the operand."""
        outer = gradient * (self._outer > 0)
        inner = self.second.backward(outer) * (self._inner > 0)
        around = outer if self.shortcut is None else self.shortcut.backward(outer)
        return self.first.backward(inner) + around


class Network:
    """A convolution, blocks in stages, the mean over the picture, and a linear classifier."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.stem = Unit(rng, 1, CHANNELS[0])
        widths = [channels for channels in CHANNELS for _ in range(BLOCKS)]
        self.blocks = [Block(rng, *pair) for pair in zip([CHANNELS[0], *widths], widths, strict=False)]
        self.weights = Parameter(rng.standard_normal((CHANNELS[-1], 10)) / np.sqrt(CHANNELS[-1]))
        self.bias = Parameter(np.zeros(10))

    def units(self) -> dict[str, Unit]:
        """Name → convolution with its normalization, in order."""
        found = {"stem": self.stem}
        for number, block in enumerate(self.blocks):
            parts = {"first": block.first, "second": block.second, "shortcut": block.shortcut}
            found |= {f"block{number}.{name}": unit for name, unit in parts.items() if unit is not None}
        return found

    def parameters(self) -> list[Parameter]:
        """All that is trained."""
        found = [self.weights, self.bias]
        for unit in self.units().values():
            found += [unit.convolution.weights, unit.normalization.scale, unit.normalization.bias]
        return found

    def step(self, images: np.ndarray, labels: np.ndarray) -> float:
        """The loss on a batch, [N, H, W, 1]; leaves the gradients in the parameters."""
        self._stem = x = np.maximum(self.stem.forward(images), 0)
        for block in self.blocks:
            x = block.forward(x)
        means = x.mean((1, 2))
        logits = means @ self.weights.value + self.bias.value
        logits -= logits.max(1, keepdims=True)
        slope = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        chosen = np.arange(len(labels)), labels
        loss = float(-np.log(slope[chosen] + 1e-9).mean())
        slope[chosen] -= 1
        slope /= len(labels)
        self.weights.gradient, self.bias.gradient = means.T @ slope, slope.sum(0)
        spread = (slope @ self.weights.value.T)[:, None, None] / np.float32(x.shape[1] * x.shape[2])
        gradient = np.broadcast_to(spread, x.shape)
        for block in reversed(self.blocks):
            gradient = block.backward(gradient)
        self.stem.backward(gradient * (self._stem > 0))
        return loss


def train(network: Network) -> None:
    """Train by Adam, at a rate that falls by a cosine; prints the loss of each epoch."""
    rng, count = np.random.default_rng(0), 0
    for epoch in range(EPOCHS):
        images, labels = training_set(PICTURES, rng)
        pixels, losses = images.transpose(0, 2, 3, 1), list[float]()
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        for start in range(0, PICTURES, BATCH):
            losses.append(network.step(pixels[start : start + BATCH], labels[start : start + BATCH]))
            count += 1
            for parameter in network.parameters():
                parameter.step(rate, count)
        print(f"epoch {epoch + 1:2}/{EPOCHS}  loss {np.mean(losses):.4f}", file=sys.stderr, flush=True)


class Writer:
    """Nodes and weights of an ONNX graph in the making."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, kind: str, name: str, *operands: str, **attributes: Any) -> str:
        """Add a node; the name of its result is its own."""
        self.nodes.append(helper.make_node(kind, list(operands), [name], name=name, **attributes))
        return name

    def weight(self, name: str, value: np.ndarray) -> str:
        """Add a weight."""
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def unit(self, name: str, unit: Unit, x: str) -> str:
        """Add a convolution with its normalization."""
        inner, outer = unit.convolution, unit.normalization
        filters = self.weight(f"{name}.weight", inner.filters())
        size: dict[str, Any] = {"kernel_shape": [inner.size] * 2, "strides": [inner.stride] * 2}
        result = self.node("Conv", f"{name}.conv", x, filters, pads=[inner.size // 2] * 4, **size)
        arrays = {"scale": outer.scale.value, "bias": outer.bias.value, "mean": outer.mean, "var": outer.variance}
        statistics = [self.weight(f"{name}.{key}", array) for key, array in arrays.items()]
        return self.node("BatchNormalization", f"{name}.norm", result, *statistics, epsilon=EPSILON)


def to_onnx(network: Network) -> onnx.ModelProto:
    """The network as ONNX, with a free batch dimension `N`."""
    writer = Writer()
    x = writer.node("Relu", "stem.relu", writer.unit("stem", network.stem, "image"))
    for number, block in enumerate(network.blocks):
        name = f"block{number}"
        y = writer.node("Relu", f"{name}.relu", writer.unit(f"{name}.first", block.first, x))
        y = writer.unit(f"{name}.second", block.second, y)
        around = x if block.shortcut is None else writer.unit(f"{name}.shortcut", block.shortcut, x)
        x = writer.node("Relu", f"{name}.result", writer.node("Add", f"{name}.sum", y, around))
    flat = writer.node("Flatten", "flatten", writer.node("GlobalAveragePool", "pool", x))
    weights, bias = (
        writer.weight("classifier.weight", network.weights.value),
        writer.weight("classifier.bias", network.bias.value),
    )
    logits = writer.node("Gemm", "classifier", flat, weights, bias)
    writer.node("Softmax", "probabilities", logits, axis=1)
    graph = helper.make_graph(
        writer.nodes,
        "residual_digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, SIZE, SIZE])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        writer.weights,
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9, producer_name="glow-mlir")
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Train, write the model, report its accuracy on pictures that were held back."""
    from glow_mlir import InferenceSession

    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("residual_digits.onnx")
    network = Network(np.random.default_rng(0))
    train(network)
    onnx.save(to_onnx(network), target)
    images, labels = held_out_set()
    session = InferenceSession(target, dimensions={"N": len(images)}, cache=False)
    accuracy = float((session.run(None, {"image": images})[0].argmax(1) == labels).mean())
    print(f"{target}: {target.stat().st_size} bytes, accuracy {accuracy:.4f} on {len(labels)} pictures held back")


if __name__ == "__main__":
    main()

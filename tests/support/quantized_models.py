"""Small networks that onnxruntime has quantized by their values on random data, in both of its formats."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from models import GraphBuilder, he, layer_norm, linear, random_inputs
from onnx import TensorProto

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Scheme:
    """How a network is quantized: onnxruntime's format, types of codes, and whether each channel has a scale."""

    format: str = "QDQ"
    activations: str = "QUInt8"
    weights: str = "QInt8"
    per_channel: bool = True
    reduce_range: bool = False


SCHEMES: Mapping[str, Scheme] = {
    "qdq-u8": Scheme(),
    "qdq-i8": Scheme(activations="QInt8"),
    "qdq-one-scale": Scheme(per_channel=False, reduce_range=True),
    "qdq-u8-weights": Scheme(per_channel=False, weights="QUInt8"),
    # Weights of 7 bits, where onnxruntime adds up in 16 bits on processors without sums of 32.
    "qoperator": Scheme(format="QOperator", reduce_range=True),
    "qoperator-i8": Scheme(format="QOperator", activations="QInt8", per_channel=False),
}
"""Name → scheme."""


def _convolution(g: GraphBuilder, x: str, channels: int, outputs: int, size: int = 3, **attributes: Any) -> str:
    group = attributes.get("group", 1)
    weights = g.weight(he(g.rng, (outputs, channels // group, size, size), channels // group * size * size))
    bias = g.weight((g.rng.standard_normal(outputs) * 0.1).astype(np.float32))
    return g.node("Conv", x, weights, bias, kernel_shape=[size] * 2, pads=[size // 2] * 4, **attributes)


def _classified(g: GraphBuilder, x: str, channels: int) -> onnx.ModelProto:
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    weights, bias = g.weight(he(g.rng, (10, channels), channels)), g.weight(np.zeros(10, np.float32))
    logits = g.node("Gemm", x, weights, bias, transB=1)
    return g.model({"input": (TensorProto.FLOAT, [1, 3, 16, 16])}, {logits: [1, 10]}, opset=13)


def residual() -> onnx.ModelProto:
    """Convolutions, a maximum of windows, and sums with what went around them, as in ResNet."""
    g = GraphBuilder(0)
    x = g.node("Relu", _convolution(g, "input", 3, 16, strides=[2, 2]))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    for stride, channels, outputs in ((1, 16, 16), (2, 16, 32)):
        y = g.node("Relu", _convolution(g, x, channels, outputs, strides=[stride] * 2))
        y = _convolution(g, y, outputs, outputs)
        x = x if channels == outputs else _convolution(g, x, channels, outputs, 1, strides=[stride] * 2)
        x = g.node("Relu", g.node("Add", x, y))
    return _classified(g, x, 32)


def mobile() -> onnx.ModelProto:
    """Depthwise convolutions between pointwise ones, clips, gates and functions that are no arithmetic."""
    g = GraphBuilder(1)
    x = _convolution(g, "input", 3, 16, strides=[2, 2])
    x = g.node("Mul", x, g.node("Sigmoid", x))
    y = g.node("Clip", _convolution(g, x, 16, 48, 1), g.weight(np.float32(0)), g.weight(np.float32(6)))
    y = g.node("LeakyRelu", _convolution(g, y, 48, 48, group=48), alpha=0.1)
    x = g.node("Add", x, _convolution(g, y, 48, 16, 1))
    gate = g.node("Sigmoid", _convolution(g, g.node("GlobalAveragePool", x), 16, 16, 1))
    x = g.node("Mul", x, gate)
    return _classified(g, x, 16)


def joined() -> onnx.ModelProto:
    """Branches that are joined, means of windows, and images that repeated pixels enlarge."""
    g = GraphBuilder(2)
    x = g.node("Relu", _convolution(g, "input", 3, 8))
    pooled = g.node("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    small = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    scales = g.weight(np.asarray([1, 1, 2, 2], np.float32))
    places: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    large = g.node("Resize", small, "", scales, mode="nearest", **places)
    parts = [_convolution(g, x, 8, 8, 1), _convolution(g, pooled, 8, 8, 1), large]
    x = g.node("Relu", _convolution(g, g.node("Concat", *parts, axis=1), 24, 16, strides=[2, 2]))
    return _classified(g, x, 16)


def encoder() -> onnx.ModelProto:
    """One layer of a transformer's encoder."""
    g = GraphBuilder(3)
    length, width, heads = 8, 32, 4
    x = layer_norm(g, "input", width)
    split = g.weight(np.asarray([1, length, heads, width // heads], np.int64))

    def part(permutation: list[int]) -> str:
        return g.node("Transpose", g.node("Reshape", linear(g, x, width, width), split), perm=permutation)

    scores = g.node("MatMul", part([0, 2, 1, 3]), part([0, 2, 3, 1]))
    weights = g.node("Softmax", g.node("Mul", scores, g.weight(np.float32(0.35))), axis=-1)
    mixed = g.node("Transpose", g.node("MatMul", weights, part([0, 2, 1, 3])), perm=[0, 2, 1, 3])
    mixed = g.node("Reshape", mixed, g.weight(np.asarray([1, length, width], np.int64)))
    x = layer_norm(g, g.node("Add", x, linear(g, mixed, width, width)), width)
    y = linear(g, x, width, 2 * width)
    y = g.node("Mul", y, g.node("Sigmoid", g.node("Mul", y, g.weight(np.float32(1.702)))))
    result = g.node("Add", x, linear(g, y, 2 * width, width))
    return g.model({"input": (TensorProto.FLOAT, [1, length, width])}, {result: [1, length, width]}, opset=17)


NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "residual": residual,
    "mobile": mobile,
    "joined": joined,
    "encoder": encoder,
}
"""Name → network of floats."""


@cache
def quantized_model(network: str, scheme: str) -> onnx.ModelProto:
    """A network as onnxruntime quantizes it."""
    return quantized(NETWORKS[network](), SCHEMES[scheme])


def quantized(model: onnx.ModelProto, chosen: Scheme) -> onnx.ModelProto:
    """A model as onnxruntime quantizes it, from its values on eight random inputs."""
    from onnxruntime import quantization

    class Samples(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [random_inputs(model, np.random.default_rng(seed)) for seed in range(8)]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "codes.onnx"
        onnx.save(model, source)
        quantization.quantize_static(
            source,
            target,
            Samples(),
            quant_format=quantization.QuantFormat[chosen.format],
            activation_type=quantization.QuantType[chosen.activations],
            weight_type=quantization.QuantType[chosen.weights],
            per_channel=chosen.per_channel,
            reduce_range=chosen.reduce_range,
        )
        return onnx.load(target)

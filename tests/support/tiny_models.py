"""Quantized networks as TensorFlow Lite writes them: one with random weights, and one from a model of floats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tflite_files import Fields, OperatorCase, TensorCase, tflite_model
from trained_tflite import trained_model

from glow_mlir.frontends.tflite.file import TfliteFile

SPREAD = 40.0
"""The standard deviation of the codes of results in front of their activation function."""

INPUT_SPREAD = 74.0
"""That of random inputs."""

WEIGHT_SPREAD = 40.0
"""That of the codes of weights."""

RELU_SPREAD = 28.0
"""The root of the mean square of results of ReLU, which have the zero point -128."""

SAME, RELU = 0, 1
"""Numbers of a padding and of an activation function in options."""


class TinyNetwork:
    """A network under construction: tensors of int8, and the operators that make them."""

    def __init__(self, seed: int, shape: Sequence[int]) -> None:
        self._random = np.random.default_rng(seed)
        self._tensors = [TensorCase(shape, "int8", scales=[0.05], zeros=[3])]
        self._operators: list[OperatorCase] = []

    def _add(self, item: TensorCase) -> int:
        self._tensors.append(item)
        return len(self._tensors) - 1

    def _shape(self, number: int) -> tuple[int, ...]:
        return tuple(self._tensors[number].shape)

    def _operator(self, kind: str, inputs: Sequence[int], result: TensorCase, options: Fields | None) -> int:
        number = self._add(result)
        self._operators.append(OperatorCase(kind, inputs, (number,), options))
        return number

    def _weights(self, source: int, shape: Sequence[int], axis: int, depth: int) -> tuple[list[int], float]:
        """Weights with scales along an axis and a bias, and the scale of results."""
        outputs, own = shape[axis], self._tensors[source].scales[0]
        values = np.clip(self._random.normal(0, WEIGHT_SPREAD, shape), -127, 127).astype(np.int8)
        scales = self._random.uniform(0.005, 0.01, outputs).astype(np.float32)
        bias = self._random.integers(-2000, 2000, outputs).astype(np.int32)
        zeros, products = [0] * outputs, (np.float32(own) * scales).tolist()
        weights = self._add(TensorCase(shape, "int8", values, scales.tolist(), zeros, axis))
        biases = self._add(TensorCase((outputs,), "int32", bias, products, zeros))
        return [weights, biases], float(np.mean(scales)) * self._scale(source, depth)

    def _scale(self, source: int, depth: int) -> float:
        """The scale of results of products of `depth` elements with weights of the scale 1."""
        item = self._tensors[source]
        spread = RELU_SPREAD if item.zeros[0] == -128 else SPREAD if source else INPUT_SPREAD
        return item.scales[0] * float(np.sqrt(depth)) * spread * WEIGHT_SPREAD / SPREAD

    def _result(self, shape: Sequence[int], scale: float, activation: int) -> TensorCase:
        return TensorCase(shape, "int8", scales=[scale], zeros=[-128 if activation else 5])

    def convolution(
        self, source: int, outputs: int, kernel: tuple[int, int] = (3, 3), step: int = 1, activation: int = RELU
    ) -> int:
        """A convolution that pads to ⌈size / step⌉."""
        batch, height, width, channels = self._shape(source)
        parts, scale = self._weights(source, (outputs, *kernel, channels), 0, channels * kernel[0] * kernel[1])
        result = self._result((batch, -(-height // step), -(-width // step), outputs), scale, activation)
        options = {0: ("b", SAME), 1: ("i", step), 2: ("i", step), 3: ("b", activation)}
        return self._operator("CONV_2D", (source, *parts), result, options)

    def depthwise(self, source: int, step: int = 1) -> int:
        """A convolution of 3x3 of each channel."""
        batch, height, width, channels = self._shape(source)
        parts, scale = self._weights(source, (1, 3, 3, channels), 3, 9)
        result = self._result((batch, -(-height // step), -(-width // step), channels), scale, RELU)
        options = {0: ("b", SAME), 1: ("i", step), 2: ("i", step), 3: ("i", 1), 4: ("b", RELU)}
        return self._operator("DEPTHWISE_CONV_2D", (source, *parts), result, options)

    def product(self, source: int, outputs: int, activation: int = 0) -> int:
        """A matrix product with one scale of weights, as converters write it."""
        batch, depth = self._shape(source)
        values = np.clip(self._random.normal(0, WEIGHT_SPREAD, (outputs, depth)), -127, 127).astype(np.int8)
        own, scale = self._tensors[source].scales[0], 0.007
        bias = self._random.integers(-2000, 2000, outputs).astype(np.int32)
        parts = [
            self._add(TensorCase((outputs, depth), "int8", values, [scale], [0])),
            self._add(TensorCase((outputs,), "int32", bias, [own * scale], [0])),
        ]
        result = self._result((batch, outputs), scale * self._scale(source, depth), activation)
        return self._operator("FULLY_CONNECTED", (source, *parts), result, {0: ("b", activation)})

    def channels(self, number: int) -> int:
        """The size of the last axis."""
        return self._shape(number)[-1]

    def sum(self, left: int, right: int, activation: int = RELU) -> int:
        """A sum, by default with ReLU."""
        scale = max(self._tensors[left].scales[0], self._tensors[right].scales[0]) * 1.5
        result = self._result(self._shape(left), scale, activation)
        return self._operator("ADD", (left, right), result, {0: ("b", activation)})

    def average(self, source: int) -> int:
        """The mean of all pixels, as a row."""
        item = self._tensors[source]
        batch, height, width, channels = self._shape(source)
        pooled = TensorCase((batch, 1, 1, channels), "int8", scales=item.scales, zeros=item.zeros)
        window = {0: ("b", 1), 1: ("i", width), 2: ("i", height), 3: ("i", width), 4: ("i", height), 5: ("b", 0)}
        number = self._operator("AVERAGE_POOL_2D", (source,), pooled, window)
        row = TensorCase((batch, channels), "int8", scales=item.scales, zeros=item.zeros)
        shape = self._add(TensorCase((2,), "int32", np.array([batch, channels], np.int32)))
        return self._operator("RESHAPE", (number, shape), row, None)

    def model(self, result: int, has_probabilities: bool = True) -> bytes:
        """The file, whose outputs are a result and by default its softmax."""
        outputs = [result]
        if has_probabilities:
            out = TensorCase(self._shape(result), "int8", scales=[1 / 256], zeros=[-128])
            outputs.append(self._operator("SOFTMAX", (result,), out, {0: ("f", 1.0)}))
        return tflite_model(self._tensors, self._operators, (0,), outputs)


def mobilenet_v2() -> bytes:
    """MobileNetV2 for images of 224x224 with 1000 classes (M. Sandler et al., 2018)."""
    network = TinyNetwork(0, (1, 224, 224, 3))
    x = network.convolution(0, 32, step=2)
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, outputs, count, first_step in blocks:
        for number in range(count):
            step = first_step if number == 0 else 1
            inner = network.convolution(x, factor * network.channels(x), (1, 1)) if factor > 1 else x
            inner = network.convolution(network.depthwise(inner, step), outputs, (1, 1), activation=0)
            x = network.sum(x, inner, activation=0) if number else inner
    return network.model(network.product(network.average(network.convolution(x, 1280, (1, 1))), 1000))


def quantized_sine() -> bytes:
    """The sine of a number of int8, quantized from the trained model of floats as converters do it."""
    model = TfliteFile.of(memoryview(trained_model("sine_float"))).subgraphs[0]
    x = np.linspace(0, 2 * np.pi, 1000, dtype=np.float32)[:, None]
    tensors, operators = [_calibrated(x)], list[OperatorCase]()
    for operator in model.operators:
        weights, bias = (model.tensors[number].values for number in operator.inputs[1:])
        assert weights is not None
        assert bias is not None
        is_last = operator is model.operators[-1]
        x = x @ weights.T + bias
        x = x if is_last else x.clip(0)
        scale, own = float(np.abs(weights).max()) / 127, tensors[-1].scales[0]
        numbers = [len(tensors) - 1, len(tensors), len(tensors) + 1]
        tensors += [
            TensorCase(weights.shape, "int8", np.round(weights / scale).astype(np.int8), [scale], [0]),
            TensorCase(bias.shape, "int32", np.round(bias / (own * scale)).astype(np.int32), [own * scale], [0]),
            _calibrated(x),
        ]
        operators.append(
            OperatorCase("FULLY_CONNECTED", numbers, (len(tensors) - 1,), {0: ("b", 0 if is_last else RELU)})
        )
    return tflite_model(tensors, operators, (0,), (len(tensors) - 1,))


def _calibrated(values: np.ndarray) -> TensorCase:
    """A tensor of int8 of one row, whose range is that of these rows."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    scale = (high - low) / 255
    return TensorCase((1, values.shape[1]), "int8", scales=[scale], zeros=[round(-128 - low / scale)])

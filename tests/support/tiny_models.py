"""
Networks of the shapes of MLPerf Tiny's four tasks, in int8 with random weights, as TensorFlow Lite writes them.

Shapes: C. Banbury et al., 2021, "MLPerf Tiny Benchmark", and its repository mlcommons/tiny.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from tflite_files import Fields, OperatorCase, TensorCase, tflite_model

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

    def sum(self, left: int, right: int) -> int:
        """A sum with ReLU."""
        scale = max(self._tensors[left].scales[0], self._tensors[right].scales[0]) * 1.5
        result = self._result(self._shape(left), scale, RELU)
        return self._operator("ADD", (left, right), result, {0: ("b", RELU)})

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


def keywords() -> bytes:
    """DS-CNN: 49 frames of 10 coefficients, 12 keywords."""
    network = TinyNetwork(0, (1, 49, 10, 1))
    x = network.convolution(0, 64, (10, 4), 2)
    for _ in range(4):
        x = network.convolution(network.depthwise(x), 64, (1, 1))
    return network.model(network.product(network.average(x), 12))


def visual_wake_words() -> bytes:
    """MobileNetV1 of a quarter of the channels: images of 96x96, whether there is a person."""
    network = TinyNetwork(1, (1, 96, 96, 3))
    x = network.convolution(0, 8, step=2)
    steps = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
    channels = (16, 32, 32, 64, 64, *(128,) * 6, 256, 256)
    for step, outputs in zip(steps, channels, strict=True):
        x = network.convolution(network.depthwise(x, step), outputs, (1, 1))
    return network.model(network.product(network.average(x), 2))


def image_classification() -> bytes:
    """ResNet-8: images of 32x32, 10 classes."""
    network = TinyNetwork(2, (1, 32, 32, 3))
    x = network.convolution(0, 16)
    for outputs, step in ((16, 1), (32, 2), (64, 2)):
        inner = network.convolution(network.convolution(x, outputs, step=step), outputs, activation=0)
        x = network.sum(inner, x if step == 1 else network.convolution(x, outputs, (1, 1), step, activation=0))
    return network.model(network.product(network.average(x), 10))


def anomaly_detection() -> bytes:
    """An autoencoder of 640 coefficients, whose sounds of machines it learns."""
    network = TinyNetwork(3, (1, 640))
    x = 0
    for outputs in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = network.product(x, outputs, RELU)
    return network.model(network.product(x, 640), has_probabilities=False)


TASKS: Mapping[str, Callable[[], bytes]] = {
    "keywords": keywords,
    "visual wake words": visual_wake_words,
    "image classification": image_classification,
    "anomaly detection": anomaly_detection,
}
"""Task of MLPerf Tiny → the file of a network of its shape."""


@cache
def tiny_model(task: str) -> bytes:
    """The file of a task, made once."""
    return TASKS[task]()

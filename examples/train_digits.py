"""
Trains the convolutional network of the digits example and writes it as ONNX.

The data set is scikit-learn's digits: 1,797 images of 8×8 pixels. Training is plain numpy: two convolutions,
max-pooling and a linear classifier, cross-entropy, Adam, small random shifts. Takes about ten seconds.

    python examples/train_digits.py [digits.onnx]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

CHANNELS = (16, 32)
Parameters = dict[str, np.ndarray]


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and labels, test images and labels; images are float32 [N, 1, 8, 8] in [0, 1]."""
    from sklearn import datasets, model_selection

    data = cast(Any, datasets).load_digits()
    images = (np.asarray(data.images) / 16.0).astype(np.float32)[:, None]
    labels = np.asarray(data.target)
    split = cast(Any, model_selection).train_test_split
    parts = split(images, labels, test_size=0.25, random_state=0, stratify=labels)
    train_images, test_images, train_labels, test_labels = (np.asarray(part) for part in parts)
    return train_images, train_labels, test_images, test_labels


def patches(x: np.ndarray) -> np.ndarray:
    """All 3×3 windows of zero-padded [N, C, H, W] as [N, H, W, C·9]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(*x.shape[:1], *x.shape[2:], -1)


def unpatches(gradient: np.ndarray, channels: int) -> np.ndarray:
    """The gradient of `patches` with regard to its operand."""
    n, height, width, _ = gradient.shape
    parts = gradient.reshape(n, height, width, channels, 3, 3)
    result = np.zeros((n, channels, height + 2, width + 2), np.float32)
    for i in range(3):
        for j in range(3):
            result[:, :, i : i + height, j : j + width] += parts[..., i, j].transpose(0, 3, 1, 2)
    return result[:, :, 1:-1, 1:-1]


def initial(rng: np.random.Generator) -> Parameters:
    """He weights and zero biases."""
    one, two = CHANNELS
    shapes = {"w1": (one, 9), "w2": (two, one * 9), "w3": (10, two * 16)}
    parameters = {
        name: (rng.standard_normal(shape) * np.sqrt(2 / shape[1])).astype(np.float32) for name, shape in shapes.items()
    }
    return parameters | {f"b{name[1]}": np.zeros(shape[0], np.float32) for name, shape in shapes.items()}


def step(p: Parameters, images: np.ndarray, labels: np.ndarray) -> tuple[float, Parameters]:
    """Loss and gradients on one batch."""
    n = len(images)
    a1 = patches(images)
    z1 = np.maximum(a1 @ p["w1"].T + p["b1"], 0)
    a2 = patches(z1.transpose(0, 3, 1, 2))
    z2 = np.maximum(a2 @ p["w2"].T + p["b2"], 0)
    blocks = z2.reshape(n, 4, 2, 4, 2, -1).transpose(0, 5, 1, 3, 2, 4).reshape(n, -1, 4)
    chosen = blocks.argmax(-1)
    pooled = np.take_along_axis(blocks, chosen[..., None], -1)[..., 0]
    logits = pooled @ p["w3"].T + p["b3"]
    logits -= logits.max(1, keepdims=True)
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    loss = float(-np.log(probabilities[np.arange(n), labels] + 1e-9).mean())
    d = probabilities
    d[np.arange(n), labels] -= 1
    d /= n
    gradients = {"w3": d.T @ pooled, "b3": d.sum(0)}
    spread = np.zeros_like(blocks)
    np.put_along_axis(spread, chosen[..., None], (d @ p["w3"])[..., None], -1)
    d2 = spread.reshape(n, -1, 4, 4, 2, 2).transpose(0, 2, 4, 3, 5, 1).reshape(z2.shape) * (z2 > 0)
    gradients |= {"w2": np.tensordot(d2, a2, ((0, 1, 2), (0, 1, 2))), "b2": d2.sum((0, 1, 2))}
    d1 = unpatches(d2 @ p["w2"], CHANNELS[0]).transpose(0, 2, 3, 1) * (z1 > 0)
    gradients |= {"w1": np.tensordot(d1, a1, ((0, 1, 2), (0, 1, 2))), "b1": d1.sum((0, 1, 2))}
    return loss, gradients


def train(images: np.ndarray, labels: np.ndarray, epochs: int = 40, batch: int = 64) -> Parameters:
    """Train by Adam; prints the loss of each epoch."""
    rng = np.random.default_rng(0)
    p = initial(rng)
    first = {name: np.zeros_like(value) for name, value in p.items()}
    second = {name: np.zeros_like(value) for name, value in p.items()}
    count = 0
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        losses: list[float] = []
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            shifted = (
                np.roll(images[chosen], tuple(rng.integers(-1, 2, 2)), (2, 3)) if rng.random() < 0.5 else images[chosen]
            )
            loss, gradients = step(p, shifted, labels[chosen])
            losses.append(loss)
            count += 1
            rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
            for name, g in gradients.items():
                first[name] = 0.9 * first[name] + 0.1 * g
                second[name] = 0.999 * second[name] + 0.001 * g * g
                mean, square = first[name] / (1 - 0.9**count), second[name] / (1 - 0.999**count)
                p[name] = (p[name] - rate * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
        print(f"epoch {epoch + 1:2}/{epochs}  loss {np.mean(losses):.4f}", file=sys.stderr)
    return p


def to_onnx(p: Parameters) -> onnx.ModelProto:
    """The network as ONNX, with a free batch dimension `N`."""
    one, two = CHANNELS
    weights = {
        "conv1.weight": p["w1"].reshape(one, 1, 3, 3),
        "conv1.bias": p["b1"],
        "conv2.weight": p["w2"].reshape(two, one, 3, 3),
        "conv2.bias": p["b2"],
        "classifier.weight": p["w3"],
        "classifier.bias": p["b3"],
    }
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], name="conv1", pads=[1] * 4),
        helper.make_node("Relu", ["conv1"], ["relu1"], name="relu1"),
        helper.make_node("Conv", ["relu1", "conv2.weight", "conv2.bias"], ["conv2"], name="conv2", pads=[1] * 4),
        helper.make_node("Relu", ["conv2"], ["relu2"], name="relu2"),
        helper.make_node("MaxPool", ["relu2"], ["pool"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool"], ["flat"], name="flatten"),
        helper.make_node(
            "Gemm", ["flat", "classifier.weight", "classifier.bias"], ["logits"], name="classifier", transB=1
        ),
        helper.make_node("Softmax", ["logits"], ["probabilities"], name="softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, producer_name="glow-mlir"
    )
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Train, report the accuracy on the test split, write the model."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("digits.onnx")
    images, labels, test_images, test_labels = load()
    parameters = train(images, labels)
    model = to_onnx(parameters)
    onnx.save(model, target)
    from onnx.reference import ReferenceEvaluator

    probabilities = np.asarray(cast(Any, ReferenceEvaluator(model)).run(None, {"image": test_images})[0])
    accuracy = float((probabilities.argmax(1) == test_labels).mean())
    print(f"{target}: {target.stat().st_size} bytes, accuracy {accuracy:.4f} on {len(test_labels)} test images")


if __name__ == "__main__":
    main()

"""Small ONNX models to train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KINDS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE}


def model(
    nodes: Sequence[onnx.NodeProto],
    weights: Mapping[str, np.ndarray],
    x: Sequence[int | str],
    y: Sequence[int | str] | None,
    dtype: type[np.floating] = np.float32,
    opset: int = 20,
) -> onnx.ModelProto:
    """A model from `x` to `y` with these initializers."""
    kind = KINDS[np.dtype(dtype)]
    graph = helper.make_graph(
        nodes,
        "trained",
        [helper.make_tensor_value_info("x", kind, x)],
        [helper.make_tensor_value_info("y", kind, y)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def weighted_sum(w: np.ndarray) -> onnx.ModelProto:
    """y = Σ w·x, whose gradient by w is x."""
    nodes = [helper.make_node("Mul", ["x", "w"], ["p"]), helper.make_node("ReduceSum", ["p"], ["y"], keepdims=0)]
    return model(nodes, {"w": w}, w.shape, [], np.float64)


def perceptron(sizes: Sequence[int], batch: int | str, dtype: type[np.floating] = np.float32) -> onnx.ModelProto:
    """Fully connected layers with ReLU between them."""
    rng, value = np.random.default_rng(7), "x"
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {}
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        weights[f"w{number}"] = (rng.standard_normal((inputs, outputs)) / inputs**0.5).astype(dtype)
        weights[f"b{number}"] = np.zeros(outputs, dtype)
        last = number == len(sizes) - 2
        result = "y" if last else f"h{number}"
        nodes.append(helper.make_node("Gemm", [value, f"w{number}", f"b{number}"], [result], name=f"layer{number}"))
        value = result
        if not last:
            nodes.append(helper.make_node("Relu", [value], [f"r{number}"]))
            value = f"r{number}"
    return model(nodes, weights, [batch, sizes[0]], [batch, sizes[-1]], dtype)


def convolutional(batch: int) -> onnx.ModelProto:
    """A convolution, batch normalization, ReLU, pooling, and a fully connected layer."""
    rng = np.random.default_rng(8)
    nodes = [
        helper.make_node("Conv", ["x", "filter"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "offset", "mean", "variance"], ["n"], momentum=0.9),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["y"]),
    ]
    weights = {
        "filter": rng.standard_normal((4, 1, 3, 3)) * 0.5,
        "scale": np.ones(4),
        "offset": np.zeros(4),
        "mean": np.zeros(4),
        "variance": np.ones(4),
        "w": rng.standard_normal((64, 3)) * 0.2,
        "b": np.zeros(3),
    }
    return model(
        nodes, {name: value.astype(np.float32) for name, value in weights.items()}, [batch, 1, 8, 8], [batch, 3]
    )

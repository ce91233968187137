"""Models of a free batch, for each operator that multiplies or sums, in each form with an order of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.frontends.onnx.node import ONNXRUNTIME

MAX_SAMPLES = 16

_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class BatchCase:
    """
    Nodes from `x` to `y`, of a shape in which `None` is the batch.

    `axis` is that of the batch in the input, `result_axis` in the result. All samples are `alike` where an operator
    looks at all of them.
    """

    shape: Sequence[int | None]
    nodes: Sequence[onnx.NodeProto]
    weights: Mapping[str, np.ndarray]
    axis: int = 0
    result_axis: int = 0
    dtype: str = "float32"
    opset: int = 21
    alike: bool = False

    def model(self) -> bytes:
        """The model, whose batch is called N."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        x = helper.make_tensor_value_info("x", kind, ["N" if size is None else size for size in self.shape])
        weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in self.weights.items()]
        graph = helper.make_graph(self.nodes, "batch", [x], [onnx.ValueInfoProto(name="y")], weights)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(ONNXRUNTIME, 1)]
        return helper.make_model(graph, ir_version=10, opset_imports=opsets).SerializeToString()

    def samples(self) -> np.ndarray:
        """As many samples as there are at most."""
        shape = [MAX_SAMPLES if size is None else size for size in self.shape]
        found = np.random.default_rng(5).standard_normal(shape).astype(self.dtype)
        return np.repeat(found[:1], MAX_SAMPLES, axis=0) if self.alike else found


def weight(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Random weights."""
    return _RANDOM.standard_normal(shape).astype(dtype)


def codes(*shape: int) -> np.ndarray:
    """Random codes."""
    return _RANDOM.integers(-127, 127, shape).astype(np.int8)


def node(kind: str, inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    """A node, of inputs that are separated by blanks; one of `-` is absent."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(kind, names, [output], **attributes)


def _products() -> dict[str, BatchCase]:
    found: dict[str, BatchCase] = {}
    for depth, columns in ((64, 10), (256, 16), (768, 768), (100, 3), (33, 40), (7, 5), (1000, 1)):
        weights = {"w": weight(depth, columns), "b": weight(columns)}
        found[f"Gemm {depth}x{columns}"] = BatchCase([None, depth], [node("Gemm", "x w b")], weights)
        found[f"MatMul {depth}x{columns}"] = BatchCase([None, depth], [node("MatMul", "x w")], {"w": weights["w"]})
    for dtype in ("float64", "float16"):
        weights = {"w": weight(100, 24, dtype=dtype)}
        found[f"MatMul of {dtype}"] = BatchCase([None, 100], [node("MatMul", "x w")], weights, dtype=dtype)
    turned = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "x t")]
    perceptron = [node("Gemm", "x w b", "t"), node("Relu", "t", "u"), node("Gemm", "u v", "s"), node("Softmax", "s")]
    packed = node("MatMulNBits", "x w s", domain=ONNXRUNTIME, K=64, N=24, bits=4, block_size=32)
    return found | {
        "MatMul of lines": BatchCase([None, 5, 64], [node("MatMul", "x w")], {"w": weight(64, 48)}),
        "MatMul from the left": BatchCase([None, 64, 20], [node("MatMul", "w x")], {"w": weight(24, 64)}),
        "MatMul of batches": BatchCase([None, 40, 96], turned, {}),
        "MatMul by a vector": BatchCase([None, 40, 96], [node("MatMul", "x w")], {"w": weight(96)}),
        "Gemm, transposed": BatchCase([None, 64], [node("Gemm", "x w", transB=1)], {"w": weight(30, 64)}),
        "Einsum": BatchCase([None, 8, 32], [node("Einsum", "x w", equation="nik,kj->nij")], {"w": weight(32, 20)}),
        "Einsum of batches": BatchCase([None, 8, 32], [node("Einsum", "x x", equation="nik,njk->nij")], {}),
        "perceptron": BatchCase([None, 64], perceptron, {"w": weight(64, 128), "b": weight(128), "v": weight(128, 10)}),
        "MatMulNBits": BatchCase(
            [None, 64], [packed], {"w": _RANDOM.integers(0, 255, (24, 2, 16)).astype(np.uint8), "s": weight(48)}
        ),
        "DFT": BatchCase([None, 40, 1], [node("DFT", "x", axis=1)], {}, opset=19),
    }


def _convolutions() -> dict[str, BatchCase]:
    found: dict[str, BatchCase] = {}

    def conv(name: str, channels: int, filters: int, kernel: int, size: Sequence[int] = (14, 14), **attributes: Any):
        shape = (filters, channels // attributes.get("group", 1), *[kernel] * len(size))
        weights = {"w": weight(*shape), "b": weight(filters)}
        found[f"Conv {name}"] = BatchCase([None, channels, *size], [node("Conv", "x w b", **attributes)], weights)

    conv("3x3", 16, 32, 3, pads=[1] * 4)
    conv("of colours", 3, 16, 3, pads=[1] * 4, strides=[2, 2])
    conv("1x1", 64, 32, 1)
    conv("of pixels", 64, 24, 1, (1, 1))
    conv("of whole images", 16, 10, 4, (4, 4))
    conv("by channel", 32, 32, 3, pads=[1] * 4, group=32)
    conv("in groups", 32, 32, 3, group=4)
    conv("5x5", 8, 8, 5, (9, 9))
    conv("of odd sizes", 17, 19, 3, (7, 7))
    conv("dilated", 16, 16, 3, dilations=[2, 2])
    conv("of sequences", 16, 24, 3, (20,))
    conv("of volumes", 4, 8, 3, (5, 5, 5))
    found["ConvTranspose"] = BatchCase(
        [None, 8, 6, 6], [node("ConvTranspose", "x w", strides=[2, 2])], {"w": weight(8, 6, 3, 3)}
    )
    network = [
        node("Conv", "x v b", "t", pads=[1] * 4),
        node("Relu", "t", "u"),
        node("Conv", "u w", "s", pads=[1] * 4),
        node("GlobalAveragePool", "s", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f z"),
    ]
    weights = {"v": weight(16, 3, 3, 3), "b": weight(16), "w": weight(32, 16, 3, 3), "z": weight(32, 10)}
    return found | {"network": BatchCase([None, 3, 16, 16], network, weights)}


def _of_codes() -> dict[str, BatchCase]:
    numbers = {"s": 0.03, "m": 0.01, "o": 0.1}
    scales = {name: np.array(number, np.float32) for name, number in numbers.items()}
    zeros = {"z": np.array(120, np.uint8), "p": np.array(128, np.uint8)}

    def between(kind: str, shape: Sequence[int | None], weights: np.ndarray, **attributes: Any) -> BatchCase:
        nodes = [
            node("QuantizeLinear", "x s z", "q"),
            node("DequantizeLinear", "q s z", "d"),
            node("DequantizeLinear", "c m", "w"),
            node(kind, "d w", "t", **attributes),
            node("QuantizeLinear", "t o p", "r"),
            node("DequantizeLinear", "r o p"),
        ]
        return BatchCase(shape, nodes, {**scales, **zeros, "c": weights})

    dynamic = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", "q w z", "i"),
        node("Cast", "i", to=TensorProto.FLOAT),
    ]
    return {
        "MatMul of codes": between("MatMul", [None, 100], codes(100, 24)),
        "Conv of codes": between("Conv", [None, 16, 9, 9], codes(24, 16, 3, 3), pads=[1] * 4),
        "MatMulInteger": BatchCase([None, 100], dynamic, {"w": codes(100, 24)}, alike=True),
    }


SHAPES: Mapping[str, tuple[Sequence[int | None], Sequence[int]]] = {
    "of rows": ([None, 1000], [1]),
    "of columns": ([None, 50, 30], [1]),
    "of several axes": ([None, 7, 9, 5], [1, 3]),
    "of images": ([None, 16, 7, 7], [1, 2, 3]),
    "of few": ([None, 5], [1]),
}
"""Shapes and the axes that are folded."""

FOLDS = ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceProd")


def _folds() -> dict[str, BatchCase]:
    found: dict[str, BatchCase] = {}
    for kind in (*FOLDS, "ReduceLogSumExp"):
        for name, (shape, axes) in SHAPES.items():
            nodes = [node("Abs", "x", "a"), node(kind, "a axes", keepdims=0)]
            found[f"{kind} {name}"] = BatchCase(shape, nodes, {"axes": np.array(axes)})
    image, wide = [None, 8, 13, 13], {"w": weight(100), "b": weight(100)}
    channels = {"w": weight(8), "b": weight(8)}
    for name, shape, axis in (("of rows", [None, 1000], 1), ("of few", [None, 10], 1), ("of channels", image, 1)):
        for kind in ("Softmax", "LogSoftmax"):
            found[f"{kind} {name}"] = BatchCase(shape, [node(kind, "x", axis=axis)], {})
    return found | {
        "LayerNormalization": BatchCase([None, 7, 100], [node("LayerNormalization", "x w b")], wide),
        "RMSNormalization": BatchCase([None, 100], [node("RMSNormalization", "x w")], {"w": wide["w"]}, opset=23),
        "InstanceNormalization": BatchCase(image, [node("InstanceNormalization", "x w b")], channels),
        "GroupNormalization": BatchCase(image, [node("GroupNormalization", "x w b", num_groups=4)], channels),
        "LRN": BatchCase([None, 8, 5, 5], [node("LRN", "x", size=5)], {}),
        "LpNormalization": BatchCase([None, 50], [node("LpNormalization", "x")], {}),
        "GlobalAveragePool": BatchCase([None, 16, 7, 7], [node("GlobalAveragePool", "x")], {}),
        "AveragePool": BatchCase([None, 16, 8, 8], [node("AveragePool", "x", kernel_shape=[3, 3])], {}),
        "CumSum": BatchCase([None, 100], [node("CumSum", "x axis")], {"axis": np.array(1)}),
        "Det": BatchCase([None, 6, 6], [node("Det", "x")], {}),
    }


def _sequences() -> dict[str, BatchCase]:
    found: dict[str, BatchCase] = {}
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for size, hidden in ((10, 16), (64, 64), (3, 5)):
            weights = {"w": weight(1, gates * hidden, size), "r": weight(1, gates * hidden, hidden)}
            nodes = [node(kind, "x w r", hidden_size=hidden)]
            found[f"{kind} {hidden}"] = BatchCase([6, None, size], nodes, weights, axis=1, result_axis=2)
    both = {"w": weight(2, 64, 10), "r": weight(2, 64, 16)}
    attention = [
        node("MatMul", "x w", "q"),
        node("MatMul", "x v", "k"),
        node("Transpose", "k", "t", perm=[0, 2, 1]),
        node("MatMul", "q t", "s"),
        node("Softmax", "s", "p"),
        node("MatMul", "p x"),
    ]
    heads: dict[str, Any] = {"q_num_heads": 4, "kv_num_heads": 4}
    return found | {
        "LSTM in both directions": BatchCase(
            [6, None, 10],
            [node("LSTM", "x w r", hidden_size=16, direction="bidirectional")],
            both,
            axis=1,
            result_axis=2,
        ),
        "Attention": BatchCase([None, 10, 32], [node("Attention", "x x x", **heads)], {}, opset=23),
        "Attention, causal": BatchCase(
            [None, 70, 64], [node("Attention", "x x x", is_causal=1, **heads)], {}, opset=23
        ),
        "attention": BatchCase([None, 12, 32], attention, {"w": weight(32, 32), "v": weight(32, 32)}),
    }


CASES: Mapping[str, BatchCase] = {**_products(), **_convolutions(), **_of_codes(), **_folds(), **_sequences()}
"""Name of a form → its model."""

"""How many floating-point operations the products of a model take."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx

Shapes = dict[str, list[int]]


def _conv(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Each output element is the sum of one filter's products."""
    return math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])


def _gemm(node: onnx.NodeProto, shapes: Shapes) -> int:
    transposed = any(a.name == "transA" and a.i for a in node.attribute)
    return math.prod(shapes[node.output[0]]) * shapes[node.input[0]][0 if transposed else 1]


def _matmul(node: onnx.NodeProto, shapes: Shapes) -> int:
    return math.prod(shapes[node.output[0]]) * shapes[node.input[0]][-1]


def _conv_transpose(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Each input element is multiplied with the filters of its channel."""
    return math.prod(shapes[node.input[0]]) * math.prod(shapes[node.input[1]][1:])


def _recurrent(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Each step multiplies one row an example with the weights of the input and with the recurrent ones."""
    steps, batch, _ = shapes[node.input[0]]
    return steps * batch * (math.prod(shapes[node.input[1]]) + math.prod(shapes[node.input[2]]))


MULTIPLY_ADDS: dict[str, Callable[[onnx.NodeProto, Shapes], int]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "MatMul": _matmul,
    "RNN": _recurrent,
}
"""Operator → its multiply-adds; operators that are not here count for nothing."""


def flops(model: onnx.ModelProto) -> int | None:
    """Two for each multiply-add of a model; `None` where the shape of an operand is unknown."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes: Shapes = {
        value.name: [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info, *graph.output)
        if all(dimension.HasField("dim_value") for dimension in value.type.tensor_type.shape.dim)
        and value.type.tensor_type.HasField("shape")
    }
    shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    try:
        return 2 * sum(
            MULTIPLY_ADDS[node.op_type](node, shapes) for node in graph.node if node.op_type in MULTIPLY_ADDS
        )
    except KeyError:
        return None

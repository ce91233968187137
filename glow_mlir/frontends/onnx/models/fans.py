"""Fan-in and fan-out of a model's layers, which determine how their parameters are initialized."""

from __future__ import annotations

import math
from typing import NamedTuple

import onnx

from glow_mlir.frontends.onnx.models.domains import plain_domain


class Fans(NamedTuple):
    """Fan-in, the number of inputs that one output depends on; fan-out, the number of outputs one input affects."""

    inputs: int
    outputs: int


def fans_of(graph: onnx.GraphProto, name: str, shape: tuple[int, ...]) -> Fans | None:
    """
    The fans of an initializer of a graph; `None` for vectors and scalars.

    Axes are [outputs, inputs, …] for convolutions, and for recurrent layers after the axis of directions. They are
    [inputs, outputs] for the right operand of a product, unless it is transposed.
    """
    node = next((node for node in graph.node if name in node.input), None)
    kind = "" if node is None or plain_domain(node.domain) else node.op_type
    if kind in ("LSTM", "GRU", "RNN"):
        shape = shape[1:]
    if len(shape) < 2:
        return None
    outputs, inputs, *window = shape
    if node is not None and kind in ("MatMul", "Gemm") and node.input[1] == name:
        is_transposed = any(item.name == "transB" and item.i for item in node.attribute)
        inputs, outputs = (inputs, outputs) if is_transposed else (shape[-2], shape[-1])
        window = []
    return Fans(inputs * math.prod(window), outputs * math.prod(window))

"""How many numbers the layers of a model are computed from, by which their parameters begin."""

from __future__ import annotations

import math
from typing import NamedTuple

import onnx

from glow_mlir.frontends.onnx.domains import plain_domain


class Fans(NamedTuple):
    """How many numbers one output of a layer is computed from, and how many outputs one input has a share in."""

    inputs: int
    outputs: int


def fans_of(graph: onnx.GraphProto, name: str, shape: tuple[int, ...]) -> Fans | None:
    """
    The fans of an initializer of a graph.

    Axes are [outputs, inputs, …], as of convolutions and recurrent layers behind the axis of their directions, but
    [inputs, outputs] for a right factor that no node transposes.
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

"""Functions of one 8-bit quantized value, as tables, which the reference kernels compute in f32."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.quantization import LookupOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator

FUNCTIONS: Mapping[str, tuple[type[HighOp], Callable[[float], float]]] = {
    "LOGISTIC": (SigmoidOp, lambda x: 1.0 / (1.0 + math.exp(-x))),
    "TANH": (TanhOp, math.tanh),
}
"""Operator → the operator on floats, and the function behind the table."""


@tflite_operator(*FUNCTIONS)
def unary(node: TfliteNode) -> SSAValue:
    """A function of each element."""
    operator, function = FUNCTIONS[node.kind]
    if node.is_float():
        return node.emit(operator, node.input(0))
    dtype = np.dtype(node.tensor(0).dtype)
    if dtype.itemsize > 1 or node.output().dtype != dtype.name:
        raise node.unsupported(f"of {dtype.name} is not supported")
    return node.emit(LookupOp, node.input(0), node.constant(table_of(node, function, dtype), f"{node.name}.table"))


def table_of(node: TfliteNode, function: Callable[[float], float], dtype: np.dtype) -> np.ndarray:
    """The result for each of 256 values, in the order of their bits; all numbers have f32."""
    own, out = (node.quantization(tensor) for tensor in (node.tensor(0), node.output()))
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)
    numbers = (own.scales[0] * (values - own.zero_points[0]).astype(np.float32)).astype(np.float32)
    found = np.array([np.float32(function(float(number))) for number in numbers], np.float32)
    scaled = found * (np.float32(1) / out.scales[0])
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled).astype(np.int64) + out.zero_points[0]
    limits = np.iinfo(dtype)
    return rounded.clip(limits.min, limits.max).astype(dtype)

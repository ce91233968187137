"""Functions of one element: of numbers, and of 8-bit quantized values as tables, which have f32 as the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import elementwise_math as math_ops
from glow_mlir.dialects.glow_high.activations import SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS
from glow_mlir.dialects.glow_high.quantization import LookupOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator

FUNCTIONS: Mapping[str, tuple[type[HighOp], Callable[[np.ndarray], np.ndarray] | None]] = {
    "ABS": (math_ops.AbsOp, None),
    "CEIL": (FLOAT_FUNCTIONS["ceil"], None),
    "COS": (FLOAT_FUNCTIONS["cos"], None),
    "EXP": (FLOAT_FUNCTIONS["exp"], np.exp),
    "FLOOR": (FLOAT_FUNCTIONS["floor"], None),
    "LOG": (FLOAT_FUNCTIONS["log"], None),
    "LOGISTIC": (SigmoidOp, lambda x: 1.0 / (1.0 + np.exp(-x))),
    "NEG": (math_ops.NegOp, None),
    "ROUND": (FLOAT_FUNCTIONS["round_even"], None),
    "SIGN": (math_ops.SignOp, None),
    "SIN": (FLOAT_FUNCTIONS["sin"], None),
    "SQRT": (FLOAT_FUNCTIONS["sqrt"], None),
    "TANH": (TanhOp, np.tanh),
    "LOGICAL_NOT": (math_ops.NotOp, None),
}
"""Operator → the operator on numbers, and the function behind the table of quantized values, if there is one."""


@tflite_operator(*FUNCTIONS)
def unary(node: TfliteNode) -> SSAValue:
    """A function of each element."""
    operator, function = FUNCTIONS[node.kind]
    if node.tensor(0).quantization is None or node.is_float():
        return node.emit(operator, node.input(0))
    _, high = node.limits(node.tensor(0))
    dtype = np.dtype(node.tensor(0).dtype)
    if function is None or high > 255 or node.output().dtype != dtype.name:
        raise node.unsupported(f"of {dtype.name} is not supported")
    return node.emit(LookupOp, node.input(0), node.constant(table_of(node, function, dtype), f"{node.name}.table"))


@tflite_operator("SQUARE")
def square(node: TfliteNode) -> SSAValue:
    """x · x."""
    if node.tensor(0).quantization is not None and not node.is_float():
        raise node.unsupported("of quantized values is not supported")
    return node.emit(MulOp, node.input(0), node.input(0))


@tflite_operator("RSQRT")
def rsqrt(node: TfliteNode) -> SSAValue:
    """1 / √x."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    return node.emit(math_ops.ReciprocalOp, node.emit(FLOAT_FUNCTIONS["sqrt"], node.input(0)))


def table_of(node: TfliteNode, function: Callable[[np.ndarray], np.ndarray], dtype: np.dtype) -> np.ndarray:
    """The result for each of 256 values, in the order of their bits; all numbers have f32."""
    own, out = (node.quantization(tensor) for tensor in (node.tensor(0), node.output()))
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)
    numbers = (own.scales[0] * (values - own.zero_points[0]).astype(np.float32)).astype(np.float32)
    with np.errstate(over="ignore"):
        found = function(numbers.astype(np.float64)).astype(np.float32)
        scaled = found * (np.float32(1) / np.float32(node.scale(node.output())))
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled) + out.zero_points[0]
    limits = np.iinfo(dtype)
    return rounded.clip(limits.min, limits.max).astype(dtype)

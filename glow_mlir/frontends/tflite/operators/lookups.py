"""Functions of one element: of numbers, and of quantized values as tables, which have f32 as the reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import elementwise_math as math_ops
from glow_mlir.dialects.glow_high.activations import EluOp, GeluOp, HardSwishOp, SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS
from glow_mlir.dialects.glow_high.quantization import LookupOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.fixed_point import hard_swish_table, reciprocal_roots
from glow_mlir.frontends.tflite.operators.interpolation import interpolated, sigmoid_of_table
from glow_mlir.frontends.tflite.operators.rescaling import centred, limited, ratio, rescaled

Function = Callable[[np.ndarray], np.ndarray]

FUNCTIONS: Mapping[str, tuple[type[HighOp], Function | None]] = {
    "CEIL": (FLOAT_FUNCTIONS["ceil"], None),
    "COS": (FLOAT_FUNCTIONS["cos"], None),
    "ELU": (EluOp, lambda x: np.where(x < 0, np.expm1(x), x)),
    "EXP": (FLOAT_FUNCTIONS["exp"], np.exp),
    "FLOOR": (FLOAT_FUNCTIONS["floor"], None),
    "LOG": (FLOAT_FUNCTIONS["log"], np.log),
    "LOGISTIC": (SigmoidOp, lambda x: 1.0 / (1.0 + np.exp(-x))),
    "ROUND": (FLOAT_FUNCTIONS["round_even"], None),
    "SIGN": (math_ops.SignOp, None),
    "SIN": (FLOAT_FUNCTIONS["sin"], None),
    "TANH": (TanhOp, np.tanh),
    "LOGICAL_NOT": (math_ops.NotOp, None),
}
"""Operator → the operator on numbers, and the function behind the table of quantized values, if there is one."""


@tflite_operator(*FUNCTIONS)
def unary(node: TfliteNode) -> SSAValue:
    """A function of each element."""
    operator, function = FUNCTIONS[node.kind]
    if not node.is_quantized():
        return node.emit(operator, node.input(0))
    if node.kind in ("LOGISTIC", "TANH") and node.tensor(0).dtype == "int16":
        return sigmoid_of_table(node)
    return _of_table(node, _logarithm(node) if node.kind == "LOG" else function)


def _of_table(node: TfliteNode, function: Function | None) -> SSAValue:
    """A function of quantized values by a table of 256 results, or by lines between 513."""
    dtype = node.tensor(0).dtype
    if function is None or node.output().dtype != dtype or dtype not in ("int8", "uint8", "int16"):
        raise node.unsupported(f"of {dtype} is not supported")
    if dtype == "int16":
        return interpolated(node, function)
    return looked_up(node, table_of(node, function, np.dtype(dtype)))


def _gelu(x: np.ndarray) -> np.ndarray:
    """x · Φ(x)."""
    return 0.5 * x * np.array([1 + math.erf(item) for item in (x * math.sqrt(0.5)).tolist()])


def _gelu_by_tanh(x: np.ndarray) -> np.ndarray:
    """An approximation of x · Φ(x)."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def looked_up(node: TfliteNode, table: np.ndarray) -> SSAValue:
    """The entries of a table [256] at the operand's values of 8 bits."""
    return node.emit(LookupOp, node.input(0), node.constant(table, f"{node.name}.table"))


def _logarithm(node: TfliteNode) -> Function:
    """The logarithm, which is the smallest number of the result for numbers that are not above 0."""
    low, _ = node.limits(node.output())
    least = np.float32(low - int(node.quantization(node.output()).zero_points[0])) * np.float32(
        node.scale(node.output())
    )
    return lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1)), least)


@tflite_operator("GELU")
def gelu(node: TfliteNode) -> SSAValue:
    """x · Φ(x), or its approximation by the hyperbolic tangent."""
    is_approximate = bool(node.options.number(0, "?"))
    if node.is_quantized():
        return _of_table(node, _gelu_by_tanh if is_approximate else _gelu)
    return node.emit(GeluOp, node.input(0), approximate="tanh" if is_approximate else "none")


@tflite_operator("HARD_SWISH")
def hard_swish(node: TfliteNode) -> SSAValue:
    """x · ReLU6(x + 3) / 6."""
    if node.is_float():
        return node.emit(HardSwishOp, node.input(0))
    if node.limits(node.tensor(0))[1] > 255:
        raise node.unsupported(f"of {node.tensor(0).dtype} is not supported")
    return looked_up(node, hard_swish_table(node))


@tflite_operator("ABS")
def absolute(node: TfliteNode) -> SSAValue:
    """|x|."""
    if not node.is_quantized():
        return node.emit(math_ops.AbsOp, node.input(0))
    return rescaled(node, node.emit(math_ops.AbsOp, centred(node, 0)), np.array([ratio(node)]))


@tflite_operator("NEG")
def negative(node: TfliteNode) -> SSAValue:
    """-x; the reference takes the integers of quantized values as they are."""
    return node.emit(math_ops.NegOp, node.input(0))


@tflite_operator("SQUARE")
def square(node: TfliteNode) -> SSAValue:
    """x · x."""
    if node.is_quantized():
        raise node.unsupported("of quantized values is not supported")
    return node.emit(MulOp, node.input(0), node.input(0))


@tflite_operator("SQRT")
def square_root(node: TfliteNode) -> SSAValue:
    """√x; that of quantized values is computed in f32, and loses its fraction."""
    if not node.is_quantized():
        return node.emit(FLOAT_FUNCTIONS["sqrt"], node.input(0))
    number = node.cast(centred(node, 0), f32)
    root = node.emit(FLOAT_FUNCTIONS["sqrt"], node.emit(MulOp, number, node.splat(node.scale(node.tensor(0)), f32)))
    return limited(node, node.cast(node.emit(DivOp, root, node.splat(node.scale(node.output()), f32)), i32))


@tflite_operator("RSQRT")
def rsqrt(node: TfliteNode) -> SSAValue:
    """1 / √x."""
    if node.is_float():
        return node.emit(math_ops.ReciprocalOp, node.emit(FLOAT_FUNCTIONS["sqrt"], node.input(0)))
    if node.tensor(0).dtype == "int8":
        return looked_up(node, reciprocal_roots(node))
    if node.tensor(0).dtype != "int16":
        raise node.unsupported(f"of {node.tensor(0).dtype} is not supported")
    most = np.float32(32767) * np.float32(node.scale(node.output()))
    return interpolated(node, lambda x: np.where(x > 0, 1 / np.sqrt(np.where(x > 0, x, 1)), most))


def table_of(node: TfliteNode, function: Function, dtype: np.dtype) -> np.ndarray:
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

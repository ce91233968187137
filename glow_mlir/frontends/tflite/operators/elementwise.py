"""Operators on two or three elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    AndOp,
    DivOp,
    EqualOp,
    GreaterOp,
    GreaterOrEqualOp,
    LessOp,
    LessOrEqualOp,
    MaxOp,
    MinOp,
    MulOp,
    OrOp,
    PowOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import NotOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.rescaling import centred, quantized_multipliers, rescaled, rescaled_twice

OPERATORS: dict[str, type[HighOp]] = {"ADD": AddOp, "SUB": SubOp, "MUL": MulOp}

FRACTION_BITS = {"int8": 20, "uint8": 20, "int16": 15}
"""Element type → the fraction bits to which summands are scaled up."""


SHIFT_FIELD = 1
"""The field of the options of sums that says whether values of 16 bits are shifted where their scales allow it."""


@tflite_operator("ADD", "SUB")
def add(node: TfliteNode) -> SSAValue:
    """
    A sum or difference; quantized summands are first rescaled to twice the larger scale, with fraction bits.

    Those of 16 bits whose scales are powers of 2 are rescaled to the scale of the result, which is the larger one.
    """
    if node.tensor(0).quantization is None or node.is_float():
        return _plain(node)
    bits = FRACTION_BITS.get(node.tensor(0).dtype)
    scales, out = [node.scale(node.tensor(position)) for position in (0, 1)], node.scale(node.output())
    common, is_shifted = 2 * max(scales), _is_shifted(node, (*scales, out))
    if bits is None or (is_shifted and max(scales) != out):
        raise node.unsupported(f"of {node.tensor(0).dtype} with these scales is not supported")
    bits = 1 if is_shifted else bits
    summands = [_in_common_scale(node, position, bits, scale / common) for position, scale in enumerate(scales)]
    total = node.emit(OPERATORS[node.kind], *summands)
    return rescaled(node, total, np.array([common / (2.0**bits * out)]), node.activation)


def _is_shifted(node: TfliteNode, scales: Sequence[float]) -> bool:
    """Whether the values have 16 bits and scales that are powers of 2, and the options do not ask for multipliers."""
    are_powers = all(math.frexp(scale)[0] == 0.5 for scale in scales)
    return node.tensor(0).dtype == "int16" and are_powers and bool(node.options.number(SHIFT_FIELD, "?", 1))


def _plain(node: TfliteNode) -> SSAValue:
    """The operator on floats, or on integers that are not quantized."""
    found = node.emit(OPERATORS[node.kind], node.input(0), node.input(1))
    return activated(node, found, node.activation)


def _in_common_scale(node: TfliteNode, position: int, bits: int, factor: float) -> SSAValue:
    """A summand times a factor up to 0.5, of i32 with fraction bits."""
    wide, is_half = centred(node, position), factor == 0.5
    one = node.constant(np.array(1 << (bits - is_half), np.int32), f"{node.name}.one")
    shifted = node.emit(MulOp, wide, one)
    if is_half:  # Nothing is rounded.
        return shifted
    multipliers, shifts = quantized_multipliers(np.array([factor]))
    return rescaled_twice(node, shifted, multipliers[0], shifts[0], i32)


@tflite_operator("MUL")
def mul(node: TfliteNode) -> SSAValue:
    """A product; that of quantized values is rescaled by the product of their scales, in f32."""
    if node.tensor(0).quantization is None or node.is_float():
        return _plain(node)
    product = node.emit(MulOp, centred(node, 0), centred(node, 1))
    left, right, out = (node.quantization(tensor).scales for tensor in (node.tensor(0), node.tensor(1), node.output()))
    return rescaled(node, product, (left * right / out).astype(np.float64), node.activation)


PLAIN: dict[str, type[HighOp]] = {
    "MAXIMUM": MaxOp,
    "MINIMUM": MinOp,
    "POW": PowOp,
    "EQUAL": EqualOp,
    "LESS": LessOp,
    "LESS_EQUAL": LessOrEqualOp,
    "GREATER": GreaterOp,
    "GREATER_EQUAL": GreaterOrEqualOp,
    "LOGICAL_AND": AndOp,
    "LOGICAL_OR": OrOp,
}
"""Operators on numbers of any type, whose quantized forms need one scale."""


@tflite_operator(*PLAIN, "NOT_EQUAL")
def plain(node: TfliteNode) -> SSAValue:
    """An operator on pairs of elements that are not quantized."""
    if node.tensor(0).quantization is not None and not node.is_float():
        raise node.unsupported("of quantized values is not supported")
    if node.kind == "NOT_EQUAL":
        return node.emit(NotOp, node.emit(EqualOp, node.input(0), node.input(1)))
    return node.emit(PLAIN[node.kind], node.input(0), node.input(1))


@tflite_operator("DIV")
def div(node: TfliteNode) -> SSAValue:
    """A quotient of floats."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    return activated(node, node.emit(DivOp, node.input(0), node.input(1)), node.activation)


@tflite_operator("SQUARED_DIFFERENCE")
def squared_difference(node: TfliteNode) -> SSAValue:
    """(x - y)²."""
    if node.tensor(0).quantization is not None and not node.is_float():
        raise node.unsupported("of quantized values is not supported")
    difference = node.emit(SubOp, node.input(0), node.input(1))
    return node.emit(MulOp, difference, difference)


@tflite_operator("SELECT", "SELECT_V2")
def select(node: TfliteNode) -> SSAValue:
    """Elements of one of two tensors, by a truth value; SELECT with a vector of them chooses rows."""
    condition, rank = node.input(0), len(node.shape(1))
    if node.kind == "SELECT" and len(node.shape(0)) == 1 < rank:
        condition = node.emit(ReshapeOp, condition, shape=(*node.shape(0), *[1] * (rank - 1)))
    return node.emit(WhereOp, condition, node.input(1), node.input(2))

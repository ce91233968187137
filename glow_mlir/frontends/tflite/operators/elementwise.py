"""Operators on two or three elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    AndOp,
    BitShiftOp,
    BitwiseXorOp,
    DivOp,
    EqualOp,
    GreaterOp,
    GreaterOrEqualOp,
    LessOp,
    LessOrEqualOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    OrOp,
    PowOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS, NotOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.quotients import quotient
from glow_mlir.frontends.tflite.operators.rescaling import centred, rescaled, scaled_by

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
    if not node.is_quantized():
        return _plain(node)
    bits = FRACTION_BITS.get(node.tensor(0).dtype)
    scales, out = [node.scale(node.tensor(position)) for position in (0, 1)], node.scale(node.output())
    common, is_shifted = 2 * max(scales), _is_shifted(node, (*scales, out))
    if bits is None or (is_shifted and max(scales) != out):
        raise node.unsupported(f"of {node.tensor(0).dtype} with these scales is not supported")
    bits = 1 if is_shifted else bits
    summands = [scaled_by(node, centred(node, position), scale / common, bits) for position, scale in enumerate(scales)]
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


@tflite_operator("MUL")
def mul(node: TfliteNode) -> SSAValue:
    """A product; that of quantized values is rescaled by the product of their scales, in f32."""
    if not node.is_quantized():
        return _plain(node)
    product = node.emit(MulOp, centred(node, 0), centred(node, 1))
    left, right, out = (node.quantization(tensor).scales for tensor in (node.tensor(0), node.tensor(1), node.output()))
    return rescaled(node, product, (left * right / out).astype(np.float64), node.activation)


PLAIN: dict[str, type[HighOp]] = {
    "MAXIMUM": MaxOp,
    "MINIMUM": MinOp,
    "POW": PowOp,
    "LOGICAL_AND": AndOp,
    "LOGICAL_OR": OrOp,
    "BITWISE_XOR": BitwiseXorOp,
    "FLOOR_MOD": ModOp,
}
"""Operators on numbers of any type; those on quantized values take the integers as they are."""

OF_QUANTIZED = ("MAXIMUM", "MINIMUM")
"""Operators among these that quantized values have."""


@tflite_operator(*PLAIN)
def plain(node: TfliteNode) -> SSAValue:
    """An operator on pairs of elements."""
    if node.is_quantized() and node.kind not in OF_QUANTIZED:
        raise node.unsupported("of quantized values is not supported")
    return node.emit(PLAIN[node.kind], node.input(0), node.input(1))


COMPARISONS: dict[str, type[HighOp]] = {
    "EQUAL": EqualOp,
    "NOT_EQUAL": EqualOp,
    "LESS": LessOp,
    "LESS_EQUAL": LessOrEqualOp,
    "GREATER": GreaterOp,
    "GREATER_EQUAL": GreaterOrEqualOp,
}

COMPARED_BITS = 8
"""The fraction bits to which quantized values are scaled up before they are compared as numbers."""


@tflite_operator(*COMPARISONS)
def compare(node: TfliteNode) -> SSAValue:
    """A comparison; quantized values of 8 bits are compared as the numbers that they are, those of 16 as integers."""
    operands = [node.input(position) for position in (0, 1)]
    if node.is_quantized() and node.tensor(0).dtype != "int16":
        operands = [
            scaled_by(node, centred(node, position), node.scale(node.tensor(position)), COMPARED_BITS)
            for position in (0, 1)
        ]
    found = node.emit(COMPARISONS[node.kind], *operands)
    return node.emit(NotOp, found) if node.kind == "NOT_EQUAL" else found


@tflite_operator("DIV", "FLOOR_DIV")
def div(node: TfliteNode) -> SSAValue:
    """A quotient: of integers without its fraction, or rounded down by FLOOR_DIV."""
    if node.is_quantized():
        if node.kind == "FLOOR_DIV":
            raise node.unsupported("of quantized values is not supported")
        return quotient(node)
    left, right = node.input(0), node.input(1)
    if node.kind == "DIV":
        return activated(node, node.emit(DivOp, left, right), node.activation)
    if node.is_float():
        return node.emit(FLOAT_FUNCTIONS["floor"], node.emit(DivOp, left, right))
    return node.emit(DivOp, node.emit(SubOp, left, node.emit(ModOp, left, right)), right)


SQUARED_BITS = {"int8": 7, "uint8": 7, "int16": 0}
"""Element type → the fraction bits to which the operands of a squared difference are scaled up."""


@tflite_operator("SQUARED_DIFFERENCE")
def squared_difference(node: TfliteNode) -> SSAValue:
    """(x - y)²; quantized operands are first rescaled to twice the larger scale, with fraction bits."""
    operands, factors = [node.input(0), node.input(1)], np.ones(1)
    if node.is_quantized():
        bits = SQUARED_BITS[node.tensor(0).dtype]
        scales = [node.scale(node.tensor(position)) for position in (0, 1)]
        common = 2 * max(scales)
        operands = [scaled_by(node, centred(node, item), scale / common, bits) for item, scale in enumerate(scales)]
        factors = np.array([common * common / (2.0 ** (2 * bits) * node.scale(node.output()))])
    difference = node.emit(SubOp, *operands)
    squares = node.emit(MulOp, difference, difference)
    return rescaled(node, squares, factors) if node.is_quantized() else squares


@tflite_operator("ADD_N")
def add_n(node: TfliteNode) -> SSAValue:
    """The sum of all operands, from the first one on."""
    if node.is_quantized():
        raise node.unsupported("of quantized values is not supported")
    total = node.input(0)
    for position in range(1, node.count):
        total = node.emit(AddOp, total, node.input(position))
    return total


@tflite_operator("RIGHT_SHIFT")
def right_shift(node: TfliteNode) -> SSAValue:
    """Bits shifted to the right; signed integers keep their sign."""
    return node.emit(BitShiftOp, node.input(0), node.input(1), direction="right")


@tflite_operator("SELECT", "SELECT_V2")
def select(node: TfliteNode) -> SSAValue:
    """Elements of one of two tensors, by a truth value; SELECT with a vector of them chooses rows."""
    condition, rank = node.input(0), len(node.shape(1))
    if node.kind == "SELECT" and len(node.shape(0)) == 1 < rank:
        condition = node.emit(ReshapeOp, condition, shape=(*node.shape(0), *[1] * (rank - 1)))
    return node.emit(WhereOp, condition, node.input(1), node.input(2))

"""Quotients of quantized values: the reciprocal of a divisor is an entry of a table, with the bits of the reference."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MaxOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, BitwiseNotOp, SignOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.frontends.tflite.node import TfliteNode
from glow_mlir.frontends.tflite.operators.fixed_point import reciprocals
from glow_mlir.frontends.tflite.operators.interpolation import entries
from glow_mlir.frontends.tflite.operators.rescaling import BITS, centred, limited, quantized_multipliers

MAX_DISTANCE = 255
"""The maximum distance of a value of 8 bits to its zero point."""


def quotient(node: TfliteNode) -> SSAValue:
    """The quotient of two operands of 8 bits."""
    if any(node.limits(node.tensor(position))[1] > MAX_DISTANCE for position in (0, 1)):
        raise node.unsupported(f"of {node.tensor(0).dtype} is not supported")
    sizes = np.arange(1, MAX_DISTANCE + 1)
    multipliers, shifts = reciprocals(sizes)
    divisor, dividend = centred(node, 1), centred(node, 0)
    size = node.emit(AbsOp, divisor)
    multiplier, shift = (
        entries(node, np.array([0, *table]), size, role)
        for table, role in ((multipliers, "reciprocals"), (shifts, "shifts"))
    )
    signed = node.emit(MulOp, dividend, node.emit(SignOp, divisor))
    distance = node.emit(MaxOp, signed, node.emit(BitwiseNotOp, signed))
    headrooms = np.array([31, *(30 - np.floor(np.log2(sizes)))], np.int64)
    headroom = entries(node, headrooms, distance, "headrooms")
    powers = (np.int64(1) << headrooms).astype(np.uint32).view(np.int32)
    shifted = node.emit(MulOp, signed, entries(node, powers, distance, "powers"))
    whole = node.emit(IntegerRescaleOp, shifted, multiplier, node.splat(BITS, i32), to=i32, rounding="twice")
    scales = [node.quantization(item).scales[0] for item in (node.tensor(0), node.tensor(1), node.output())]
    factors, bits = quantized_multipliers(np.array([scales[0] / (scales[1] * scales[2])], np.float64))
    total = node.emit(AddOp, node.emit(AddOp, shift, headroom), node.splat(int(bits[0]), i32))
    factor = node.constant(factors[0], f"{node.name}.multiplier")
    found = node.emit(IntegerRescaleOp, whole, factor, total, to=i32, rounding="twice")
    return limited(node, found, node.activation)

"""Functions of integers of 32 bits in fixed point that a program computes, with the bits of gemmlowp."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    BitShiftOp,
    DivOp,
    GreaterOp,
    GreaterOrEqualOp,
    MaxOp,
    MinOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.frontends.tflite.node import TfliteNode
from glow_mlir.frontends.tflite.operators.fixed_point import LARGEST
from glow_mlir.frontends.tflite.operators.interpolation import number


def times(node: TfliteNode, left: SSAValue, right: SSAValue | int) -> SSAValue:
    """The high half of twice the product of integers of i32, with halves rounded up."""
    factor = number(node, right) if isinstance(right, int) else right
    return node.emit(IntegerRescaleOp, left, factor, number(node, 31), to=i32, rounding="twice")


def length(node: TfliteNode, value: SSAValue) -> SSAValue:
    """⌊log2 x⌋ of integers [..., 1] of i32: the number of powers of 2 from 2 on that they reach; 0 for 0."""
    powers = node.constant((np.int64(1) << np.arange(1, 31)).astype(np.int32), f"{node.name}.powers")
    reached = node.cast(node.emit(GreaterOrEqualOp, value, powers), i32)
    return node.emit(ReduceSumOp, reached, axes=[-1], keepdims=True)


def shifted(node: TfliteNode, value: SSAValue, bits: SSAValue, direction: str = "left") -> SSAValue:
    """Integers shifted, in i64."""
    return node.emit(BitShiftOp, node.cast(value, i64), node.cast(bits, i64), direction=direction)


def reciprocal(node: TfliteNode, fraction: SSAValue) -> SSAValue:
    """1 / (1 + x), as `fixed_point.reciprocal` computes it."""
    half = node.emit(BitShiftOp, fraction, number(node, 1), direction="right")
    denominator = node.emit(AddOp, half, number(node, 1 << 30))
    found = node.emit(AddOp, number(node, 1515870810), times(node, denominator, -1010580540))
    for _ in range(3):
        rest = node.emit(SubOp, number(node, 1 << 29), times(node, denominator, found))
        found = node.emit(AddOp, found, node.emit(MulOp, times(node, found, rest), number(node, 4)))
    return _limited(node, node.emit(AddOp, node.cast(found, i64), node.cast(found, i64)))


def _limited(node: TfliteNode, value: SSAValue) -> SSAValue:
    """Integers of i64 as integers of 32 bits, of which those that are too large become the largest one."""
    return node.cast(node.emit(MinOp, value, node.splat(LARGEST, i64)), i32)


def root_of_reciprocal(node: TfliteNode, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """
    1 / √x of integers [..., 1] as multipliers and shifts to the right, as `fixed_point.root_of_reciprocal` has them.

    The root of 0 is that of 1.
    """
    half_length = node.emit(DivOp, node.emit(SubOp, number(node, 30), length(node, value)), number(node, 2))
    pairs = node.emit(SubOp, half_length, number(node, 1))
    more = node.emit(AddOp, half_length, half_length)  # Two more than twice the pairs, which may be -1.
    scaled = shifted(node, shifted(node, value, more), number(node, 3), "right")
    scaled, one = node.cast(scaled, i32), number(node, 1)
    half = node.emit(BitShiftOp, node.emit(AddOp, scaled, one), one, direction="right")
    found = number(node, 1 << 28)
    for step in range(5):
        cube = found if step == 0 else times(node, times(node, found, found), found)
        cube = number(node, 1 << 28) if step == 0 else node.emit(MulOp, cube, number(node, 64))
        three = times(node, found, (1 << 28) + (1 << 27))
        found = node.emit(MulOp, node.emit(SubOp, three, times(node, half, cube)), number(node, 8))
    shift = node.emit(SubOp, number(node, 11), pairs)
    none = number(node, 0)
    left = node.emit(MaxOp, node.emit(NegOp, shift), none)
    multiplier = node.cast(shifted(node, times(node, found, 1518500250), left), i32)
    is_above = node.emit(GreaterOp, value, one)
    multiplier = node.emit(WhereOp, is_above, multiplier, number(node, LARGEST))
    return multiplier, node.emit(WhereOp, is_above, node.emit(MaxOp, shift, none), none)

"""The bits of numbers as numbers of another element type, of the same or another width."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import is_bool, number_width, numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import BitShiftOp
from glow_mlir.dialects.glow_high.elementwise_math import BitCastOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.node_builder import NodeBuilder

BYTE = 8


def unsigned_bits(node: NodeBuilder, value: SSAValue) -> tuple[SSAValue, int]:
    """The bits of numbers as unsigned integers of a byte or more, and the number of bits that count."""
    element = element_of(value)
    width = number_width(element)
    if is_bool(element):
        raise node.unsupported("of truth values is not supported")
    whole = IntegerType(width, Signedness.UNSIGNED)
    bits = value if element == whole else node.emit(BitCastOp, value, to=whole)
    return node.cast(bits, IntegerType(max(width, BYTE), Signedness.UNSIGNED)), width


def of_bits(node: NodeBuilder, bits: SSAValue, element: Attribute) -> SSAValue:
    """Numbers of an element type from their bits, the lowest ones of unsigned integers."""
    whole = IntegerType(number_width(element), Signedness.UNSIGNED)
    bits = node.cast(bits, whole)
    return bits if whole == element else node.emit(BitCastOp, bits, to=element)


def bit_cast(node: NodeBuilder, value: SSAValue, target: Attribute) -> SSAValue:
    """
    The same bits as numbers of another type; an axis of those in a wider number, lowest bits first, is the last.

    That axis is added for a narrower type, and removed for a wider one.
    """
    source, wanted = number_width(element_of(value)), number_width(target)
    if source == wanted:
        return value if element_of(value) == target else node.emit(BitCastOp, value, to=target)
    bits, _ = unsigned_bits(node, value)
    if is_bool(target):
        raise node.unsupported("to truth values is not supported")
    narrow, wide = sorted((source, wanted))
    shifts = np.arange(wide // narrow) * narrow
    if source == wide:
        apart = node.emit(ReshapeOp, bits, shape=(*sizes_of(bits), 1))
        steps = node.constant(shifts.astype(numpy_dtype(element_of(bits))))
        return of_bits(node, node.emit(BitShiftOp, apart, steps, direction="right"), target)
    whole = IntegerType(max(wide, BYTE), Signedness.UNSIGNED)
    wider = node.cast(bits, whole)
    moved = node.emit(BitShiftOp, wider, node.constant(shifts.astype(numpy_dtype(whole))), direction="left")
    joined = node.emit(ReduceSumOp, moved, axes=(rank_of(moved) - 1,), keepdims=False)
    return of_bits(node, joined, target)

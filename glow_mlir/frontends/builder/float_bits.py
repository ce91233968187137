"""Formulas on the bits of floats: signs, angles in all quadrants, and neighbours."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.expressions import Tensor, atan, equal, maximum, minimum, where
from glow_mlir.dialects.glow_high.elementwise_math import BitCastOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.builder.formulas import Formulas


def bits(formulas: Formulas, value: SSAValue) -> Tensor:
    """The bits of floats as signed integers."""
    return formulas.of(formulas.emit(BitCastOp, value, to=IntegerType(byte_width(element_of(value)) * 8)))


def sign_bit(formulas: Formulas, value: SSAValue) -> Tensor:
    """Whether floats have the sign bit, including -0."""
    return bits(formulas, value) < 0


def angle(y: Tensor, x: Tensor, is_below: Tensor, is_left: Tensor) -> Tensor:
    """The angle of the point (x, y), from -π to π; `is_below` and `is_left` are the sign bits of y and x."""
    height, width = abs(y), abs(x)
    ratio = where(equal(height, width), 1.0, minimum(height, width) / maximum(height, width))
    ratio = where(equal(height, 0.0) & equal(width, width), 0.0, ratio)
    steep = atan(ratio)
    first = where(height > width, math.pi / 2 - steep, steep)
    found = where(is_left, math.pi - first, first)
    return where(is_below, -found, found)


def next_float(formulas: Formulas, value: SSAValue, target: SSAValue) -> Tensor:
    """The next float after a number in the direction of another of the same type."""
    x, goal = formulas.of(value), formulas.of(target)
    own = bits(formulas, value)
    outward = equal(x < goal, x > 0.0)
    lowest = -1 << (byte_width(x.element) * 8 - 1)
    smallest = where(sign_bit(formulas, target), own * 0 + (lowest + 1), 1)
    moved = where(equal(x, 0.0), smallest, where(outward, own + 1, own - 1))
    stepped = formulas.of(formulas.emit(BitCastOp, formulas.value(moved), to=x.element))
    is_number = equal(x, x) & equal(goal, goal)
    return where(equal(x, goal), goal, where(is_number, stepped, math.nan))

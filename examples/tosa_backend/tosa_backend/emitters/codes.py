"""Operators between codes: changes of scale by integers, and tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
from xdsl.dialects.builtin import IntegerType, i8, i32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import is_integer, storage_of
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import (
    ONCE,
    VALUES_OF_A_BYTE,
    IntegerRescaleOp,
    LookupOp,
    StorageCastOp,
)
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.quant import UniformQuantizedType, integer_bounds
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of
from glow_mlir.errors import ModelError
from glow_mlir.ir.locations import location_name
from glow_mlir.support.dataclass import dataclass
from tosa_backend.body import can_write, elementwise
from tosa_backend.builder import TosaBuilder
from tosa_backend.dialect import PROPAGATE
from tosa_backend.elements import OFFSET, held, held_zero_point, offset_of, to_held
from tosa_backend.rules import emits, is_constant

MIN_MULTIPLIER = 1 << 30
"""Multipliers are doubled, with their shifts, up to this: TOSA shifts no number of more bits than the shift."""
MULTIPLIER_BITS = 31
"""Bits of the largest multiplier."""
MAX_FACTOR = 1 << 21
"""Products of integers of 9 bits with factors up to this are exact in a RESCALE: its shift is 9 or more."""
LEAST, MOST = -(1 << 31), (1 << 31) - 1
"""What 32 bits hold."""
MAX_SHIFT = 62
"""The largest shift of RESCALE."""


@emits(StorageCastOp)
def storage_cast(op: StorageCastOp, b: TosaBuilder) -> SSAValue:
    """Nothing: the integers are the same."""
    return b.value(op.input)


def _can_rescale(op: IntegerRescaleOp) -> bool:
    """Whether multipliers and shifts are constants, and the input has the shape of the result."""
    known = is_constant(op.multiplier) and is_constant(op.shift) and text(op.rounding) == ONCE
    return known and shape_of(op.input) == shape_of(op.result) and is_integer(storage_of(element_of(op.input)))


@emits(IntegerRescaleOp, when=_can_rescale)
def integer_rescale(op: IntegerRescaleOp, b: TosaBuilder) -> SSAValue:
    """
    RESCALE with one rounding, of halves up.

    An offset is the bias of the product in front, the zero point of narrow codes, or added before.
    """
    multiplier, shift = _scaled(op, b)
    x, zero = b.value(op.input), -offset_of(element_of(op.input))
    if op.offset is not None and op not in b.with_bias:
        x, zero = _less_offset(op, x, zero, b)
    if (multiplier < 0).any():
        signs = np.where(multiplier < 0, -1, 1).astype(np.int32)
        x, zero = b.mul(_wide(x, zero, b), b.constant(signs)), 0
    return _with_last_axis(x, multiplier.shape, b, _Rescale(op.to, np.abs(multiplier), shift, zero, b))


def _scaled(op: IntegerRescaleOp, b: TosaBuilder) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers of 31 bits and their shifts, with as many axes as the result."""
    known = [b.known(value) for value in (op.multiplier, op.shift)]
    ranked = [
        array.reshape((1,) * (rank_of(op.result) - array.ndim) + array.shape) for array in known if array is not None
    ]
    multiplier, shift = (np.array(array, np.int64) for array in np.broadcast_arrays(*ranked))
    while (small := (np.abs(multiplier) < MIN_MULTIPLIER) & (multiplier != 0) & (shift < MAX_SHIFT)).any():
        multiplier[small] *= 2
        shift[small] += 1
    if shift.min() < 2:
        raise ModelError("TOSA rescales by no factor of 2^29 or more", node=location_name(op.location))
    return multiplier, shift


@dataclass(frozen=True)
class _Rescale:
    """A change of scale, with a multiplier for all or for each index of the last axis."""

    to: Attribute
    multiplier: np.ndarray
    shift: np.ndarray
    zero: int
    b: TosaBuilder

    def __call__(self, x: SSAValue) -> SSAValue:
        factors, places = self.multiplier.reshape(-1), self.shift.reshape(-1)
        if held(self.to) == i8:
            zeros = self.zero, held_zero_point(self.to)
            return _limited(self.b.rescale(x, i8, factors, places, zeros), self.to, self.b)
        return _wider_codes(self.b.rescale(x, i32, factors, places, (self.zero, 0)), self.to, self.b)


def _with_last_axis(x: SSAValue, varying: Shape, b: TosaBuilder, function: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """What a function makes of a tensor whose last axis has those axes in which `varying` is not 1."""
    shape = shape_of(x)
    some = [axis for axis, size in enumerate(varying) if size > 1]
    if some in ([], [len(shape) - 1]):
        return function(x)
    order = [*(axis for axis in range(len(shape)) if axis not in some), *some]
    turned = b.transpose(x, order)
    last = math.prod(shape[axis] for axis in some)
    found = function(b.reshape(turned, (math.prod(shape) // last, last)))
    return b.transpose(b.reshape(found, shape_of(turned)), [order.index(axis) for axis in range(len(shape))])


def _less_offset(op: IntegerRescaleOp, x: SSAValue, zero: int, b: TosaBuilder) -> tuple[SSAValue, int]:
    """The input and its zero point, with an offset in one of them."""
    assert op.offset is not None
    known = b.known(op.offset)
    if known is not None and known.size == 1 and element_of(x) == i8 and -OFFSET <= zero - int(known.item()) < OFFSET:
        return x, zero - int(known.item())
    offset = b.ranked(b.value(op.offset), rank_of(x))
    return b.add(_wide(x, zero, b), offset), 0


def _wide(x: SSAValue, zero: int, b: TosaBuilder) -> SSAValue:
    """Integers less a zero point, in 32 bits."""
    return x if element_of(x) == i32 and not zero else b.rescale(x, i32, zero_points=(zero, 0))


def _wider_codes(x: SSAValue, element: Attribute, b: TosaBuilder) -> SSAValue:
    """Codes of more than 8 bits, of codes less their zero point: RESCALE adds no such zero point."""
    zero, (low, high) = held_zero_point(element), _bounds(element)
    ones = (1,) * rank_of(x)
    for name, bound in (("maximum", max(low - zero, LEAST)), ("minimum", min(high - zero, MOST))):
        x = b(name, x, b.splat(bound, i32, ones), nan_mode=PROPAGATE)
    return b.cast(b.add(x, b.splat(zero, i32, ones)) if zero else x, held(element))


def _bounds(element: Attribute) -> tuple[int, int]:
    """The least and the largest code of a type."""
    if isinstance(element, UniformQuantizedType):
        return element.least.data, element.most.data
    return integer_bounds(cast("IntegerType", element))


def _limited(x: SSAValue, element: Attribute, b: TosaBuilder) -> SSAValue:
    """Codes of 8 bits limited to the part of the range that their type has."""
    low, high = (bound - offset_of(element) for bound in _bounds(element))
    return b.clamp(x, low, high) if (low, high) != (-OFFSET, OFFSET - 1) else x


@emits(MulOp, when=can_write)
def mul(op: MulOp, b: TosaBuilder) -> SSAValue:
    """MUL; of codes of 8 bits, in 32, with a number it is one RESCALE, which NPUs have for sums of codes."""
    for value, other in ((op.left, op.right), (op.right, op.left)):
        factor, cast_ = b.known(other), value.owner
        if (
            factor is None
            or factor.size != 1
            or not isinstance(cast_, CastOp)
            or shape_of(value) != shape_of(op.result)
        ):
            continue
        if held(element_of(cast_.input)) == i8 and 0 < (number := int(factor.item())) <= MAX_FACTOR:
            places = MULTIPLIER_BITS - number.bit_length()
            zero = -offset_of(element_of(cast_.input))
            return b.rescale(b.value(cast_.input), i32, number << places, places, (zero, 0))
    return elementwise(op, b)


def _has_known_table(op: LookupOp) -> bool:
    return is_constant(op.table)


@emits(LookupOp, when=_has_known_table)
def lookup(op: LookupOp, b: TosaBuilder) -> SSAValue:
    """TABLE, whose first entry is of the least integer; that of `lookup` is of the bits 0."""
    table = b.known(op.table)
    assert table is not None
    entries = to_held(table) if offset_of(element_of(op.input)) else np.roll(to_held(table), VALUES_OF_A_BYTE // 2)
    return b("table", b.value(op.input), b.constant(np.ascontiguousarray(entries)))

"""
Symbolic evaluation of operands that determine shapes, if sizes are known at run time only.

Models compute them from the shapes of values by a few operators. Their values are arrays of numbers and symbolic sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.element_types import byte_width, is_bool, is_integer
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, NegOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.reductions import ReduceProdOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.properties import integer, sizes, text
from glow_mlir.dialects.shapes import element_of, has_one_element, has_static_shape, shape_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.frontends.builder.forward_analysis import analyzed, operands_of
from glow_mlir.interpreter.indexing import from_front
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.support.symbols import Size, product_of, quotient


def _divided(total: Size, part: Size) -> Size:
    """The quotient of sizes, rounded toward 0; raises `ValueError` if it is not a size for all values of symbols."""
    if isinstance(total, int) and isinstance(part, int) and part:
        whole = abs(total) // abs(part)
        return whole if (total < 0) == (part < 0) else -whole
    found = quotient(total, part)
    if found is None and isinstance(part, int) and part > 0 and smallest(total) >= 0:
        return total // part
    if found is None:
        raise ValueError(f"{total} / {part} is no size")
    return found


def _is_less(one: Size, other: Size) -> bool:
    """Whether a size is less than another one; raises `ValueError` if it depends on the values of symbols."""
    if smallest(other - one) > 0:
        return True
    if largest(other - one) <= 0:
        return False
    raise ValueError(f"{one} < {other} differs")


def _is_equal(one: Size, other: Size) -> bool:
    """Whether two sizes are equal; raises `ValueError` if it depends on the values of symbols."""
    difference = one - other
    if smallest(difference) <= 0 <= largest(difference) and difference != 0:
        raise ValueError(f"{one} = {other} differs")
    return difference == 0


def _larger(one: Size, other: Size) -> Size:
    return other if _is_less(one, other) else one


def _smaller(one: Size, other: Size) -> Size:
    return one if _is_less(one, other) else other


def _chosen(condition: bool, yes: Size, no: Size) -> Size:
    return yes if condition else no


ARITHMETIC: Mapping[type[Operation], tuple[int, Callable[..., Any]]] = {
    binary.AddOp: (2, operator.add),
    binary.SubOp: (2, operator.sub),
    binary.MulOp: (2, operator.mul),
    binary.DivOp: (2, _divided),
    binary.MaxOp: (2, _larger),
    binary.MinOp: (2, _smaller),
    binary.EqualOp: (2, _is_equal),
    binary.WhereOp: (3, _chosen),
    NegOp: (1, operator.neg),
}
"""Elementwise operator → its number of operands, and its function on sizes and truth values."""

MOVEMENT = (ConcatOp, ExpandOp, GatherOp, ReshapeOp, SliceOp, TransposeOp)
"""Operators that only move elements."""


MAX_I32 = 1 << 31
"""The exclusive upper bound of i32; casts to types of 32 bits or more do not change sizes below it."""


class SymbolicValues:
    """Values that depend on shapes only; each value is analyzed once."""

    def __init__(self, fold: Callable[[SSAValue], np.ndarray | None]) -> None:
        self._fold = fold
        self._known: dict[SSAValue, np.ndarray | None] = {}

    def of(self, value: SSAValue) -> np.ndarray | None:
        """The value as an array of integers or sizes; `None` if it depends on more than shapes."""
        return analyzed(value, self._known, operands_of, self._transfer)

    def _transfer(self, value: SSAValue) -> np.ndarray | None:
        """Like `of`, for a value whose operands are analyzed."""
        if (array := self._fold(value)) is not None:
            return array if array.dtype.kind in "iub" else None
        owner = value.owner
        if isinstance(owner, ShapeOp):
            return np.array([*sizes(owner.sizes), None], dtype=object)[:-1]
        if not isinstance(owner, HighOp) or not _is_followed(value):
            return None
        found = [self._known[item] for item in owner.operands]
        if not found or any(item is None for item in found):
            return None
        try:
            return _computed(owner, [item.astype(object) for item in found if item is not None])
        except ValueError:
            return None


def _is_followed(value: SSAValue) -> bool:
    """Whether a value has integers or truth values, and a static shape."""
    return has_static_shape(value) and (is_integer(element_of(value)) or is_bool(element_of(value)))


def _computed(op: HighOp, operands: list[np.ndarray]) -> np.ndarray | None:
    """Apply an operator to sizes; `None` for an operator that is not supported."""
    if (known := ARITHMETIC.get(type(op))) is not None:
        count, function = known
        return np.asarray(np.frompyfunc(function, count, 1)(*operands), dtype=object)
    if isinstance(op, CastOp):
        fits = all(0 <= smallest(item) <= largest(item) < MAX_I32 for item in operands[0].flat)
        fits &= byte_width(element_of(op.result)) >= 4
        return operands[0] if fits else None
    if isinstance(op, ReduceProdOp):
        if has_one_element(op.result):
            return np.asarray(product_of(operands[0].flat), dtype=object).reshape(shape_of(op.result))
        return None
    if not isinstance(op, MOVEMENT):
        return None
    if isinstance(op, GatherOp):
        values, axis = operands[0], integer(op.axis)
        indices = from_front(op, operands[1].astype(np.int64), values.shape[axis], text(op.failure))
        return np.asarray(values.take(indices, axis), dtype=object)
    (result,) = apply_semantics(op, group_like(op, operands))
    return np.asarray(result, dtype=object)

"""Semantics of slices whose start is an operand."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from glow_mlir.dialects.properties import integer, size
from glow_mlir.dialects.shapes import normalize_axis
from glow_mlir.dialects.sizes import static
from glow_mlir.ir.registry import semantics


def _replaced(axis: int, shape: tuple[int, ...], start: np.ndarray, count: int) -> tuple[slice, ...]:
    """The index of `count` elements along an axis, from the clamped start on."""
    axis = normalize_axis(axis, len(shape))
    first = min(max(int(start.item()), 0), shape[axis] - count)
    return (*[slice(None)] * axis, slice(first, first + count))


@semantics(DynamicSliceOp)
def dynamic_slice(op: DynamicSliceOp, x: np.ndarray, start: np.ndarray) -> np.ndarray:
    """A copy of the part."""
    (count,) = static((size(op.size),))
    return x[_replaced(integer(op.axis), x.shape, start, count)].copy()


@semantics(DynamicUpdateSliceOp)
def dynamic_update_slice(op: DynamicUpdateSliceOp, x: np.ndarray, update: np.ndarray, start: np.ndarray) -> np.ndarray:
    """A copy of the input with the part replaced."""
    result, axis = x.copy(), normalize_axis(integer(op.axis), x.ndim)
    result[_replaced(axis, x.shape, start, update.shape[axis])] = update
    return result

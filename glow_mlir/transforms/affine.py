"""Arithmetic with constants as one factor and one addend: sums, products, negations and batch-norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of
from glow_mlir.storage import Storage

AFFINE = (AddOp, SubOp, MulOp, DivOp, NegOp, BatchNormalizationOp)
"""Operators that may be a factor and an addend."""

ONE, ZERO = np.ones(()), np.zeros(())


@dataclass(frozen=True)
class Affine:
    """x · factor + addend, in f64; both broadcast to x, and as a rule have far fewer elements."""

    factor: np.ndarray
    addend: np.ndarray

    def then(self, after: Affine) -> Affine:
        """First this, then `after`."""
        with np.errstate(all="ignore"):
            return Affine(self.factor * after.factor, self.addend * after.factor + after.addend)

    def is_identity_but_for_addend(self) -> bool:
        """Whether the factor is 1 everywhere."""
        return bool((self.factor == 1.0).all())

    def per_channel(self, channels: int) -> Affine | None:
        """The same with one element for each place along the last axis; `None` where they vary along others."""
        parts = [_vector(part, channels) for part in (self.factor, self.addend)]
        return None if parts[0] is None or parts[1] is None else Affine(parts[0], parts[1])

    def is_safe(self, element: object, parts: Sequence[Affine]) -> bool:
        """
        Whether it stands for the composition of `parts` in that element type: all its numbers are finite, and none got
        lost, a factor by underflow or an addend by cancellation.
        """
        info = np.finfo(numpy_dtype(element))  # pyright: ignore[reportArgumentType]
        if not all(np.isfinite(part).all() and (np.abs(part) <= info.max).all() for part in (self.factor, self.addend)):
            return False
        if ((np.abs(self.factor) < info.tiny) & (self.factor != 0)).any():
            return False
        return len(parts) < 2 or _kept(self.addend, parts)


def _kept(addend: np.ndarray, parts: Sequence[Affine]) -> bool:
    """Whether no addend of `parts`, scaled by what follows, is far larger than what they sum up to."""
    largest: np.ndarray = ZERO
    for part in parts:
        largest = np.maximum(np.abs(largest * part.factor), np.abs(part.addend))
    return bool(((np.abs(addend) >= largest * MOST_CANCELLED) | (largest == 0)).all())


MOST_CANCELLED = 2.0**-10
"""Addends whose sum is smaller than this share of the largest stay apart: `(x + c) - c` may be meant to round."""


def _vector(array: np.ndarray, channels: int) -> np.ndarray | None:
    if any(size != 1 for size in array.shape[:-1]) or array.size not in (1, channels):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))


def affine_parts(op: Operation, data: SSAValue, storage: Storage) -> Affine | None:
    """What `op` does to its operand `data`; `None` where that is more than a factor and an addend of constants."""
    if not isinstance(op, AFFINE) or op.results[0].type != data.type or not isinstance(element_of(data), AnyFloat):
        return None
    if isinstance(op, BatchNormalizationOp):
        return _batch_normalization(op, data, storage)
    if isinstance(op, NegOp):
        return Affine(-ONE, ZERO)
    other = op.right if op.left is data else op.left
    array = storage.value_of(other)
    if array is None or (isinstance(op, DivOp) and other is op.left):
        return None
    values = array.astype(np.float64)
    if isinstance(op, AddOp):
        return Affine(ONE, values)
    if isinstance(op, SubOp):
        return Affine(ONE, -values) if other is op.right else Affine(-ONE, values)
    with np.errstate(divide="ignore"):
        return Affine(values if isinstance(op, MulOp) else 1.0 / values, ZERO)


def data_operand(op: Operation, storage: Storage) -> SSAValue | None:
    """The operand of an operator of `AFFINE` that is no constant; `None` where that is not exactly one."""
    if isinstance(op, NegOp | BatchNormalizationOp):
        return op.input
    if not isinstance(op, AFFINE):
        return None
    free = [value for value in op.operands if storage.value_of(value) is None]
    return free[0] if len(free) == 1 else None


def _batch_normalization(op: BatchNormalizationOp, data: SSAValue, storage: Storage) -> Affine | None:
    if op.input is not data:
        return None
    arrays = [storage.value_of(value) for value in (op.scale, op.offset, op.mean, op.variance)]
    if any(array is None for array in arrays):
        return None
    rank = rank_of(op.input)
    trailing = rank - 1 - normalize_axis(integer(op.axis), rank)
    scale, offset, mean, variance = (
        np.asarray(array, np.float64).reshape(-1, *(1,) * trailing) for array in arrays if array is not None
    )
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + number(op.epsilon))
    return Affine(factor, offset - mean * factor)

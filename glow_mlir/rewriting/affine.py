"""Affine form of arithmetic with constants: sums, products, negations and batch-norms as one factor and one addend."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.properties import integer, number
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import float_limits

AffineOp = AddOp | SubOp | MulOp | DivOp | NegOp | BatchNormalizationOp
"""Operators that may have an affine form."""

ONE, ZERO = np.ones(()), np.zeros(())


@dataclass(frozen=True)
class Affine:
    """x · factor + addend, in f64; both broadcast to x, and as a rule have far fewer elements."""

    factor: np.ndarray
    addend: np.ndarray

    def then(self, after: Affine) -> Affine:
        """Compose: apply this function, then `after`."""
        with np.errstate(all="ignore"):
            return Affine(self.factor * after.factor, self.addend * after.factor + after.addend)

    def is_identity_but_for_addend(self) -> bool:
        """Whether the factor is 1 everywhere."""
        return bool((self.factor == 1.0).all())

    def per_channel(self, channels: int) -> Affine | None:
        """Expand factor and addend to one element per channel of the last axis; `None` if they vary along others."""
        parts = [_vector(part, channels) for part in (self.factor, self.addend)]
        return None if parts[0] is None or parts[1] is None else Affine(parts[0], parts[1])

    def is_safe(self, element: Attribute) -> bool:
        """Whether factor and addend are finite in the element type `element`, and no factor underflows."""
        _, tiny, largest = float_limits(numpy_dtype(element))
        for part in (self.factor, self.addend):
            if not np.isfinite(part).all() or (np.abs(part) > largest).any():
                return False
        return not ((np.abs(self.factor) < tiny) & (self.factor != 0)).any()


def _vector(array: np.ndarray, channels: int) -> np.ndarray | None:
    if any(size != 1 for size in array.shape[:-1]) or array.size not in (1, channels):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))


_BY_CONSTANT: Mapping[tuple[type[Operation], str], Callable[[np.ndarray], Affine]] = {
    (AddOp, "left"): lambda constant: Affine(ONE, constant),
    (AddOp, "right"): lambda constant: Affine(ONE, constant),
    (SubOp, "left"): lambda constant: Affine(-ONE, constant),
    (SubOp, "right"): lambda constant: Affine(ONE, -constant),
    (MulOp, "left"): lambda constant: Affine(constant, ZERO),
    (MulOp, "right"): lambda constant: Affine(constant, ZERO),
    (DivOp, "right"): lambda constant: Affine(1.0 / constant, ZERO),
}
"""(Operator, side of its constant) → affine function of the other operand."""


def affine_parts(op: Operation, data: SSAValue, storage: Storage) -> Affine | None:
    """
    The affine function that `op` applies to its operand `data`; `None` if `op` is not affine with constant
    coefficients.
    """
    if not isinstance(op, AffineOp) or op.results[0].type != data.type or not isinstance(element_of(data), AnyFloat):
        return None
    if isinstance(op, BatchNormalizationOp):
        return _batch_normalization(op, data, storage)
    if isinstance(op, NegOp):
        return Affine(-ONE, ZERO)
    side, other = ("right", op.right) if op.left is data else ("left", op.left)
    form, array = _BY_CONSTANT.get((type(op), side)), storage.value_of(other)
    if form is None or array is None:
        return None
    with np.errstate(all="ignore"):
        return form(array.astype(np.float64))


def data_operand(op: Operation, storage: Storage) -> SSAValue | None:
    """The only non-constant operand of an affine operator; `None` unless there is exactly one."""
    if isinstance(op, NegOp | BatchNormalizationOp):
        return op.input
    if not isinstance(op, AffineOp):
        return None
    free = [value for value in op.operands if not storage.is_constant(value)]
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

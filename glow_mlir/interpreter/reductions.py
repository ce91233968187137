"""Semantics of positions of extremes, running totals, and the k largest."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.registry import semantics
from glow_mlir.support.dtypes import is_float_dtype


def bounds(dtype: np.dtype) -> tuple[float, float]:
    """The smallest and the largest value of an element type; infinities for floats."""
    if is_float_dtype(dtype):
        return -np.inf, np.inf
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


@semantics(ops.TopKOp)
def top_k(op: ops.TopKOp, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Sort stably; descending order sorts the reversed array, so that equal elements keep their order.

    Floats are sorted as f64: numpy puts NaN last, which `ml_dtypes` does not.
    """
    axis, largest, keys = integer(op.axis), flag(op.largest), wide(x)
    if largest:
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(keys, axis=axis, kind="stable")
    indices = np.take(order, range(integer(op.k)), axis=axis).astype(np.int64)
    return np.take_along_axis(x, indices, axis), indices

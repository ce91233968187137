"""Semantics of normalization, in f64, rounded once."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.properties import integer, number
from glow_mlir.ir.registry import semantics

Array = np.ndarray


@semantics(ops.LrnOp)
def lrn(op: ops.LrnOp, x: Array) -> Array:
    """Divide by a power of the sum of squares of neighbouring channels."""
    exact = np.moveaxis(x.astype(np.float64), integer(op.axis), -1)
    channels = exact.shape[-1]
    before, after = op.reach()
    squares = np.pad(exact**2, [*[(0, 0)] * (x.ndim - 1), (before, after)])
    total = sum((squares[..., start : start + channels] for start in range(before + after + 1)), np.zeros(()))
    base = number(op.bias) + number(op.alpha) / integer(op.size) * total
    return np.moveaxis(exact / base ** number(op.beta), -1, integer(op.axis)).astype(x.dtype)

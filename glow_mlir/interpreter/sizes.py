"""Semantics of operators that return sizes."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.properties import ints
from glow_mlir.ir.registry import semantics


@semantics(ShapeOp)
def shape(op: ShapeOp) -> np.ndarray:
    """The sizes, which are numbers at execution."""
    return np.array(ints(op.sizes), np.int64)

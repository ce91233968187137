"""Semantics of operators without operands."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import SplatOp, splat_element
from glow_mlir.dialects.properties import number
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.ir.registry import semantics


@semantics(SplatOp)
def splat(op: SplatOp) -> np.ndarray:
    """Fill with the value."""
    return np.full(shape_of(op.result), number(op.value), numpy_dtype(splat_element(op.value)))

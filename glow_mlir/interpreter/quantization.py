"""Semantics of operators on quantized values that are not elementwise."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high.quantization import LookupOp
from glow_mlir.ir.registry import semantics


@semantics(LookupOp)
def lookup(op: LookupOp, x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Look up the table entry of each value by its bits."""
    return table[x.view(np.uint8)]

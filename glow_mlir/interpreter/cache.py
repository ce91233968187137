"""Semantics of keys and values in one table."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high.cache import ExtendCacheOp
from glow_mlir.dialects.properties import size
from glow_mlir.dialects.sizes import static
from glow_mlir.ir.registry import semantics


@semantics(ExtendCacheOp)
def extend_cache(
    op: ExtendCacheOp, past: np.ndarray, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Write sequence by sequence."""
    (length,) = static((size(op.length),))
    result = np.zeros((*past.shape[:2], length, past.shape[3]), past.dtype)
    for sequence, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        kept = max(0, min(start, past.shape[2], length))
        result[sequence, :, :kept] = past[sequence, :, :kept]
        begin = max(0, start)
        end = min(end, start + rows.shape[2], length)
        if begin < end:
            result[sequence, :, begin:end] = rows[sequence, :, begin - start : end - start]
    return result

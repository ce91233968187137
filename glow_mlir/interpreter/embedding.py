"""Semantics of sums of table rows: accumulated in f64, rounded once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.embedding import FUSED_BYTES, SparseLengthsSumOp
from glow_mlir.dialects.properties import flag, text
from glow_mlir.dialects.shapes import element_of
from glow_mlir.errors import ExecutionError
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import semantics


@semantics(SparseLengthsSumOp)
def sparse_lengths_sum(
    op: SparseLengthsSumOp,
    data: np.ndarray,
    indices: np.ndarray,
    segments: np.ndarray,
    weights: np.ndarray | None,
    scales: np.ndarray | None,
    offsets: np.ndarray | None,
) -> np.ndarray:
    """Sum the rows of each segment."""
    edges = _edges(text(op.bounds), segments.astype(np.int64), len(indices))
    positions_fit = not len(indices) or (indices.min() >= 0 and indices.max() < len(data))
    if not (positions_fit and edges[0] >= 0 and edges[-1] <= len(indices) and (np.diff(edges) >= 0).all()):
        raise ExecutionError(op.FAILURE, node=location_name(op.location))
    rows = _numbers(data[indices], flag(op.fused))
    if scales is not None and offsets is not None:
        rows = rows * wide(scales)[indices, None] + wide(offsets)[indices, None]
    if weights is not None:
        rows = rows * wide(weights)[:, None]
    sums = [rows[start:stop].sum(0) for start, stop in pairwise(edges)]
    return np.reshape(sums, (len(edges) - 1, rows.shape[1])).astype(numpy_dtype(element_of(op.outputs()[0])))


def _edges(bounds: str, segments: np.ndarray, count: int) -> np.ndarray:
    """The starts of the segments, and the end of the last one."""
    if bounds == "lengths":
        return np.concatenate([[0], np.cumsum(segments)])
    return segments if bounds == "edges" else np.concatenate([segments, [count]])


def _numbers(rows: np.ndarray, fused: bool) -> np.ndarray:
    if not fused:
        return rows.astype(np.float64)
    parts = np.ascontiguousarray(rows[:, -FUSED_BYTES:]).view("<f4").astype(np.float64)
    return rows[:, :-FUSED_BYTES] * parts[:, :1] + parts[:, 1:]

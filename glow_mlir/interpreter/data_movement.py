"""Semantics of data movement."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from glow_mlir.dialects.glow_high.data_movement import (
    ConcatOp,
    ExpandOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TileOp,
    TransposeOp,
)
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.ir.registry import semantics


@semantics(ReshapeOp)
def reshape(op: ReshapeOp, x: np.ndarray) -> np.ndarray:
    """Reshape the elements in order."""
    return x.reshape(ints(op.shape))


@semantics(TransposeOp)
def transpose(op: TransposeOp, x: np.ndarray) -> np.ndarray:
    """Permute the axes."""
    return np.array(x.transpose(ints(op.permutation)), order="C")


@semantics(ConcatOp)
def concat(op: ConcatOp, parts: list[np.ndarray]) -> np.ndarray:
    """Concatenate the operands."""
    return np.concatenate(parts, axis=integer(op.axis))


@semantics(SliceOp)
def slice_(op: SliceOp, x: np.ndarray) -> np.ndarray:
    """Select the indices along each axis."""
    return x[np.ix_(*(np.array(taken, np.int64) for taken in op.ranges()))]


@semantics(PadOp)
def pad(op: PadOp, x: np.ndarray, value: np.ndarray | None) -> np.ndarray:
    """Pad the input."""
    widths = op.widths()
    if text(op.mode) == "constant":
        fill = np.zeros((), x.dtype) if value is None else value.reshape(())
        return np.pad(x, widths, constant_values=fill[()])
    mode = cast(Any, text(op.mode))  # numpy wants a literal
    return np.pad(x, widths, mode=mode)


@semantics(ExpandOp)
def expand(op: ExpandOp, x: np.ndarray) -> np.ndarray:
    """Broadcast the elements."""
    return np.array(np.broadcast_to(x, ints(op.shape)), order="C")


@semantics(TileOp)
def tile(op: TileOp, x: np.ndarray) -> np.ndarray:
    """Repeat the whole tensor along each axis."""
    return np.tile(x, ints(op.repeats))

"""Semantics of operators that select elements by indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glow_mlir.dialects.folds import COMBINING, Fold
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.indexing import (
    OUT_OF_RANGE,
    ReverseSequenceOp,
    Scatter,
    ScatterElementsOp,
    ScatterNDOp,
)
from glow_mlir.dialects.properties import integer, text
from glow_mlir.errors import failed_call
from glow_mlir.interpreter.scalar import FUNCTIONS
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import semantics


def from_front(op: HighOp, indices: np.ndarray, size: int, failure: str = OUT_OF_RANGE) -> np.ndarray:
    """Make negative indices positive; raises `ExecutionError`, with that `failure`, for an index out of range."""
    positions = np.where(indices < 0, indices.astype(np.int64) + size, indices)
    if ((positions < 0) | (positions >= size)).any():
        raise failed_call(failure, location_name(op.location))
    return positions


def grid_index(shape: Sequence[int], axis: int, indices: np.ndarray) -> tuple[np.ndarray, ...]:
    """The index grid of an array of `shape`, with `indices` along `axis`."""
    positions: list[np.ndarray] = list(np.indices(shape, sparse=True))
    positions[axis] = indices
    return tuple(np.broadcast_to(index, shape) for index in positions)


REDUCE: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda _, update: update,
    **{name: FUNCTIONS[Fold(name, 0).operation] for name in COMBINING},
}
"""Reduction → function of the old element or slice and the update."""


def scatter(op: Scatter, x: np.ndarray, positions: Sequence[np.ndarray], updates: np.ndarray) -> np.ndarray:
    """Scatter `updates` to `x` at `positions`, an index array per leading axis, unless one is negative; in order."""
    result = np.array(x)
    reduce = REDUCE[text(op.reduction)]
    for position in np.ndindex(positions[0].shape):
        index = tuple(int(axis[position]) for axis in positions)
        if min(index) >= 0:
            result[index] = reduce(result[index], updates[position])
    return result


def targets(op: Scatter, indices: np.ndarray, size: int) -> np.ndarray:
    """The positions of indices along an axis; -1 for one out of range, if its update is left out."""
    if text(op.failure):
        return from_front(op, indices, size)
    positions = np.where(indices < 0, indices.astype(np.int64) + size, indices)
    return np.where((positions < 0) | (positions >= size), -1, positions)


@semantics(ScatterElementsOp)
def scatter_elements(op: ScatterElementsOp, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """Scatter single elements along the axis."""
    axis = integer(op.axis)
    return scatter(op, x, grid_index(indices.shape, axis, targets(op, indices, x.shape[axis])), updates)


@semantics(ScatterNDOp)
def scatter_nd(op: ScatterNDOp, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """Scatter slices at index tuples."""
    positions = [targets(op, indices[..., i], x.shape[i]) for i in range(indices.shape[-1])]
    return scatter(op, x, positions, updates)


@semantics(ReverseSequenceOp)
def reverse_sequence(op: ReverseSequenceOp, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Reverse each sequence up to its length."""
    batch, time = integer(op.batch_axis) % x.ndim, integer(op.time_axis) % x.ndim
    positions = np.indices(x.shape)
    ends = np.clip(lengths, 0, x.shape[time])[positions[batch]]
    positions[time] = np.where(positions[time] < ends, ends - 1 - positions[time], positions[time])
    return x[tuple(positions)]

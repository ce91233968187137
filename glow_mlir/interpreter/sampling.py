"""Meaning of sampling: for each place the elements of an image that count, and their weights, along each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from glow_mlir.dialects.glow_high.sampling import GridSampleOp
from glow_mlir.dialects.properties import flag, text
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.registry import semantics
from glow_mlir.support.dtypes import is_float_dtype

CUBIC_COEFFICIENT = -0.75


@dataclass(frozen=True)
class Tap:
    """One element that counts for each of many places: along one axis, or, as an offset, in an image."""

    index: np.ndarray
    """Which element; in range."""
    weight: Any
    """Its weight."""
    inside: Any = True
    """Whether there is such an element; what lies outside is zero."""


def cubic_weights(t: Any) -> list[Any]:
    """The weights of the elements at -1, 0, 1 and 2 for a place at `t`, from 0 up to 1."""
    a = CUBIC_COEFFICIENT

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


WEIGHTS: dict[str, tuple[int, Callable[[Any], list[Any]]]] = {
    "linear": (0, lambda t: [1 - t, t]),
    "cubic": (-1, cubic_weights),
}
"""Mode → the first element that counts, from the one in front of a place, and the weights of all."""


def _in_elements(x: np.ndarray, size: int, aligned: bool) -> np.ndarray:
    """Places from -1 to 1 as places between elements."""
    return (x + 1) / 2 * (size - 1) if aligned else ((x + 1) * size - 1) / 2


def _reflected(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Places mirrored at both borders, as often as it takes to come between them."""
    length = high - low
    if length == 0:
        return np.full_like(x, low)
    beyond = np.where(x < low, low - x, x - high)
    times = np.trunc(beyond / length)
    rest = beyond - times * length
    from_low = (x < low) != (np.mod(times, 2) == 1)
    return np.where((x < low) | (x > high), np.where(from_low, low + rest, high - rest), x)


def _places(op: GridSampleOp, grid: np.ndarray, size: int) -> np.ndarray:
    """Where along an axis each number of the grid lies, in elements; within reach of the padding."""
    aligned = flag(op.align_corners)
    x = _in_elements(grid, size, aligned)
    if text(op.mode) == "nearest":
        x = np.rint(x)
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if text(op.padding) == "border":
        return np.where((x < low) | (x > high), np.clip(x, 0, size - 1), x)
    return _reflected(x, x.dtype.type(low), x.dtype.type(high)) if text(op.padding) == "reflection" else x


def along_axis(op: GridSampleOp, grid: np.ndarray, size: int) -> list[Tap]:
    """The elements along an axis that count for each number of the grid."""
    x = _places(op, grid, size)
    mode = text(op.mode)
    first, weights = (0, [1.0]) if mode == "nearest" else (WEIGHTS[mode][0], WEIGHTS[mode][1](wide(x - np.floor(x))))
    before = np.where(np.isnan(x), -8, np.clip(np.floor(x), -8, size + 8)).astype(np.int64) + first
    return [_tap(op, before + position, weight, size) for position, weight in enumerate(weights)]


def _tap(op: GridSampleOp, index: np.ndarray, weight: Any, size: int) -> Tap:
    if text(op.padding) == "zeros":
        return Tap(np.clip(index, 0, size - 1), weight, (index >= 0) & (index < size))
    if text(op.padding) == "reflection":
        period = max(2 * (size - 1) if flag(op.align_corners) else 2 * size, 1)
        index = np.mod(index, period)
        index = np.where(index < size, index, period - (0 if flag(op.align_corners) else 1) - index)
    return Tap(np.clip(index, 0, size - 1), weight)


def sampled(x: np.ndarray, axes: Sequence[Sequence[Tap]]) -> np.ndarray:
    """
    The sum over all taps, in f64 for floats: `x` is [N, spatial…, C], a tap of an axis [N, places…].

    Elements with the only tap are moved as they are.
    """
    samples = np.arange(len(x)).reshape(-1, *(1,) * (axes[0][0].index.ndim - 1))
    total: Any = 0.0
    for taps in product(*axes):
        inside = np.all([np.broadcast_to(tap.inside, tap.index.shape) for tap in taps], axis=0)[..., None]
        values = np.where(inside, x[(samples, *(tap.index for tap in taps))], np.zeros((), x.dtype))
        if all(len(each) == 1 for each in axes):
            return values
        weight = np.prod([tap.weight for tap in taps], axis=0)[..., None]
        total = total + values.astype(np.float64) * weight
    return total.astype(x.dtype)


@semantics(GridSampleOp)
def grid_sample(op: GridSampleOp, x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The last axis comes first in the rows of the grid."""
    wide = grid if is_float_dtype(grid.dtype) and grid.dtype.itemsize > 2 else grid.astype(np.float32)
    with np.errstate(all="ignore"):
        axes = [along_axis(op, wide[..., -1 - axis], size) for axis, size in enumerate(x.shape[1:-1])]
        return sampled(x, axes)

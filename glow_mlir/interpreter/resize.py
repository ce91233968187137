"""Meaning of resizing: for each place of the result the elements of the input, and their weights, along one axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.properties import flag, number, sizes, text
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.ir.registry import semantics
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes


@dataclass(frozen=True)
class AxisSampling:
    """How one axis is resampled."""

    axis: int
    indices: np.ndarray
    """[places, taps]: elements of the input, in range."""
    weights: np.ndarray
    """[places, taps], in f64; each row sums to 1, or to 0 where nothing counts."""
    outside: np.ndarray
    """[places]: whether a place lies outside the input and has the extrapolation value."""


@dataclass(frozen=True)
class _Axis:
    """What the rule for coordinates needs to know of an axis."""

    before: int
    after: int
    scale: float
    start: float
    end: float

    @property
    def exact(self) -> float:
        """The size of the result before it was rounded."""
        return self.scale * self.before


def _half_pixel(a: _Axis, y: np.ndarray) -> np.ndarray:
    return (y + 0.5) / a.scale - 0.5


def _half_pixel_symmetric(a: _Axis, y: np.ndarray) -> np.ndarray:
    # In this order of sums: another one rounds places that are whole numbers to the other side.
    return a.before / 2 * (1 - a.after / a.exact) + (y + 0.5) / a.scale - 0.5


def _pytorch_half_pixel(a: _Axis, y: np.ndarray) -> np.ndarray:
    return np.full_like(y, -0.5) if a.exact == 1 else _half_pixel(a, y)


def _align_corners(a: _Axis, y: np.ndarray) -> np.ndarray:
    return np.zeros_like(y) if a.exact == 1 else y * (a.before - 1) / (a.exact - 1)


def _asymmetric(a: _Axis, y: np.ndarray) -> np.ndarray:
    return y / a.scale


def _crop_and_resize(a: _Axis, y: np.ndarray) -> np.ndarray:
    length = (a.end - a.start) * (a.before - 1)
    inner = np.full_like(y, length / 2) if a.exact == 1 else y * length / (a.exact - 1)
    return inner + a.start * (a.before - 1)


def _half_pixel_for_nearest(a: _Axis, y: np.ndarray) -> np.ndarray:
    return (y + 0.5) / a.scale


PLACES: dict[str, Callable[[_Axis, np.ndarray], np.ndarray]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_crop_and_resize": _crop_and_resize,
    "tf_half_pixel_for_nn": _half_pixel_for_nearest,
}
"""Rule for coordinates → place in the input, in elements, of each place of the result."""

NEAREST: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""Rounding → the nearest element of a place."""


def _triangle(distance: np.ndarray, _: float) -> np.ndarray:
    return np.maximum(0.0, 1.0 - np.abs(distance))


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


KERNELS: dict[str, tuple[int, Callable[[np.ndarray, float], np.ndarray]]] = {
    "linear": (1, _triangle),
    "cubic": (2, _cubic),
}
"""Mode → radius of the kernel, and its weight at a distance."""


def _neighbours(op: ResizeOp, x: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Elements, which may lie beyond the border, and weights at places `x`."""
    mode = text(op.mode)
    if mode == "nearest":
        return NEAREST[text(op.rounding)](x)[:, None].astype(np.int64), np.ones((len(x), 1))
    radius, kernel = KERNELS[mode]
    shrink = min(scale, 1.0) if flag(op.antialias) else 1.0
    first = int(np.floor(-radius / shrink)) + 1
    elements = np.floor(x)[:, None] + np.arange(first, 2 - first)[None, :]
    weights = kernel((elements - x[:, None]) * shrink, float(number(op.cubic_coefficient)))
    return elements.astype(np.int64), weights / weights.sum(axis=1, keepdims=True)


def samplings(op: ResizeOp, given: Sizes | None = None) -> Iterator[AxisSampling]:
    """
    How each axis that changes is resampled, of an input of those sizes, by default what is known of its own.

    Where symbols decide, it is told for the largest size: of a smaller one, the last element stands for those behind.
    """
    crops = text(op.coordinates) == "tf_crop_and_resize"
    changes = zip(given or sizes_of(op.input), sizes(op.shape), op.ratios(), strict=True)
    for axis, (size, places, scale) in enumerate(changes):
        start, end = op.region(axis)
        if size == places and np.isclose(scale, 1.0) and not (crops and (start, end) != (0.0, 1.0)):
            continue
        before, after = largest(size), largest(places)
        place = PLACES[text(op.coordinates)]
        x = place(_Axis(before, after, scale, start, end), np.arange(after, dtype=np.float64))
        elements, weights = _neighbours(op, x, scale)
        if flag(op.exclude_outside) and text(op.mode) != "nearest":
            weights = np.where((elements < 0) | (elements >= before), 0.0, weights)
            total = weights.sum(axis=1, keepdims=True)
            weights = weights / np.where(total == 0, 1.0, total)
        outside = (x < 0) | (x > before - 1) if crops else np.zeros(after, np.bool_)
        yield AxisSampling(axis, np.clip(elements, 0, before - 1), weights, outside)


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`x` in another type: rounded and limited to the range for integers."""
    if dtype.kind not in "iu":
        return x.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.round(x), info.min, info.max).astype(dtype)


@semantics(ResizeOp)
def resize(op: ResizeOp, x: np.ndarray) -> np.ndarray:
    """One axis after the other, in f64, rounded once."""
    nearest = text(op.mode) == "nearest"
    result = x if nearest else x.astype(np.float64)
    for sampling in samplings(op, x.shape):
        trailing = (1,) * (x.ndim - 1 - sampling.axis)
        taken = np.take(result, sampling.indices, axis=sampling.axis)
        weights = sampling.weights.reshape(*sampling.weights.shape, *trailing)
        result = np.squeeze(taken, sampling.axis + 1) if nearest else (taken * weights).sum(axis=sampling.axis + 1)
        fill = saturated(np.array(number(op.extrapolation)), result.dtype)
        result = np.where(sampling.outside.reshape(-1, *trailing), fill, result)
    return saturated(result, x.dtype)

"""Semantics of resizing: input elements and weights of each output position, along one axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

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
    """The resampling of one axis."""

    axis: int
    indices: np.ndarray
    """[positions, taps]: indices of input elements, in range."""
    weights: np.ndarray
    """[positions, taps], in f64; each row sums to 1, or to 0 if no element counts."""
    outside: np.ndarray
    """[positions]: whether a position lies outside the input, and gets the extrapolation value."""


@dataclass(frozen=True)
class _Axis:
    """The parameters of an axis for coordinate rules."""

    before: int
    after: int
    scale: float | np.float32
    """In f32 if positions are computed in f32."""
    start: float = 0.0
    end: float = 1.0

    @property
    def exact(self) -> float | np.float32:
        """The unrounded size of the result."""
        return self.scale * self.before


def _half_pixel(a: _Axis, y: np.ndarray) -> np.ndarray:
    return (y + 0.5) / a.scale - 0.5


def _half_pixel_symmetric(a: _Axis, y: np.ndarray) -> np.ndarray:
    # The order of summation matters: another one rounds integer positions to the other side.
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


SAMPLE_POSITIONS: dict[str, Callable[[_Axis, np.ndarray], np.ndarray]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_crop_and_resize": _crop_and_resize,
    "tf_half_pixel_for_nn": _half_pixel_for_nearest,
}
"""Coordinate rule → input position, in elements, of each output position."""


def _centres(a: _Axis) -> Fractions:
    return 2 * a.before, a.before - a.after, 2 * a.after


def _pytorch_centres(a: _Axis) -> Fractions:
    return (0, -1, 2) if a.after == 1 else _centres(a)


def _corners(a: _Axis) -> Fractions:
    return a.before - 1, 0, max(a.after - 1, 1)


def _crops(a: _Axis) -> Fractions:
    start, length = Fraction(a.start), (Fraction(a.end) - Fraction(a.start)) * (a.before - 1)
    step, first = (Fraction(0), length / 2) if a.after == 1 else (length / (a.after - 1), Fraction(0))
    first += start * (a.before - 1)
    divisor = step.denominator * first.denominator
    return int(step * divisor), int(first * divisor), divisor


Fractions = tuple[int, int, int]
"""Step, start and divisor: the position of y is (step · y + start) / divisor."""

EXACT_POSITIONS: dict[str, Callable[[_Axis], Fractions]] = {
    "half_pixel": _centres,
    "half_pixel_symmetric": _centres,
    "pytorch_half_pixel": _pytorch_centres,
    "align_corners": _corners,
    "asymmetric": lambda a: (a.before, 0, a.after),
    "tf_crop_and_resize": _crops,
    "tf_half_pixel_for_nn": lambda a: (2 * a.before, a.before, 2 * a.after),
}
"""
Coordinate rule → the positions of `SAMPLE_POSITIONS` as quotients of integers, if the scale is the ratio of the sizes.
"""

NEAREST: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "round_prefer_floor": lambda x, divisor: -((divisor - 2 * x) // (2 * divisor)),
    "round_prefer_ceil": lambda x, divisor: (2 * x + divisor) // (2 * divisor),
    "floor": lambda x, divisor: x // divisor,
    "ceil": lambda x, divisor: -(-x // divisor),
}
"""Rounding → the nearest element of the position x / divisor."""

MAX_EXACT = 1 << 60
"""Limit below which roundings of numpy's integers do not overflow."""


def _nearest_positions(word: str, a: _Axis, by_sizes: bool) -> tuple[np.ndarray, int]:
    """
    The positions of an axis and their divisor, for selection of the nearest element.

    With given sizes, they are exact quotients of integers. With a given scale, they are computed in f32, as PyTorch and
    ONNX Runtime do: exact positions would differ, since a scale such as 1/3 is rounded itself.
    """
    if by_sizes:
        step, start, divisor = EXACT_POSITIONS[word](a)
        is_small = max(abs(step) * a.after + abs(start), divisor) <= MAX_EXACT
        return np.arange(a.after, dtype=np.int64 if is_small else np.object_) * step + start, divisor
    narrow = _Axis(a.before, a.after, np.float32(a.scale), a.start, a.end)
    return SAMPLE_POSITIONS[word](narrow, np.arange(a.after, dtype=np.float32)).astype(np.float64), 1


def nearest_elements(word: str, rounding: str, before: int, after: int, scale: float | None = None) -> np.ndarray:
    """
    The nearest of `before` input elements for each of `after` output positions.

    `word` is the coordinate rule, crops excluded; `scale` is the scale of the axis, if it is not the ratio of the
    sizes.
    """
    axis = _Axis(before, after, after / before if scale is None else scale)
    x, divisor = _nearest_positions(word, axis, by_sizes=scale is None)
    return np.clip(NEAREST[rounding](x, divisor), 0, before - 1).astype(np.int64)


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
    """Elements, possibly beyond the border, and weights at positions `x`, for a mode other than nearest."""
    radius, kernel = KERNELS[text(op.mode)]
    shrink = min(scale, 1.0) if flag(op.antialias) else 1.0
    first = int(np.floor(-radius / shrink)) + 1
    elements = np.floor(x)[:, None] + np.arange(first, 2 - first)[None, :]
    weights = kernel((elements - x[:, None]) * shrink, float(number(op.cubic_coefficient)))
    return elements, weights / weights.sum(axis=1, keepdims=True)


def samplings(op: ResizeOp, given: Sizes | None = None) -> Iterator[AxisSampling]:
    """
    The resampling of each axis that changes, for an input of those sizes, by default the known ones.

    With symbols, it is computed for the largest size; for smaller ones, the last element replaces those behind it.
    """
    word = text(op.coordinates)
    crops = word == "tf_crop_and_resize"
    is_nearest = text(op.mode) == "nearest"
    changes = zip(given or sizes_of(op.input), sizes(op.shape), op.ratios(), op.by_sizes(), strict=True)
    for axis, (size, positions, scale, by_sizes) in enumerate(changes):
        start, end = op.region(axis)
        if size == positions and np.isclose(scale, 1.0) and not (crops and (start, end) != (0.0, 1.0)):
            continue
        before, after = largest(size), largest(positions)
        sampled = _Axis(before, after, scale, start, end)
        if is_nearest:
            x, divisor = _nearest_positions(word, sampled, by_sizes)
            elements, weights = NEAREST[text(op.rounding)](x, divisor)[:, None], np.ones((after, 1))
        else:
            x, divisor = SAMPLE_POSITIONS[word](sampled, np.arange(after, dtype=np.float64)), 1
            elements, weights = _neighbours(op, x, scale)
        if flag(op.exclude_outside) and not is_nearest:
            weights = np.where((elements < 0) | (elements >= before), 0.0, weights)
            total = weights.sum(axis=1, keepdims=True)
            weights = weights / np.where(total == 0, 1.0, total)
        outside = (x < 0) | (x > (before - 1) * divisor) if crops else np.zeros(after, np.bool_)
        indices = np.clip(elements, 0, before - 1).astype(np.int64)
        yield AxisSampling(axis, indices, weights, outside.astype(np.bool_))


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert `x` to another type: rounded, and clipped to the range for integers."""
    if dtype.kind not in "iu":
        return x.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.round(x), info.min, info.max).astype(dtype)


@semantics(ResizeOp)
def resize(op: ResizeOp, x: np.ndarray) -> np.ndarray:
    """Resample one axis after the other, in f64, and round once."""
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

"""Semantics of sampling: image elements and weights of each position, along each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from glow_mlir.dialects.glow_high.sampling import DeformColumnsOp, DeformConvOp, GridSampleOp, RoiAlignOp, RoiPoolOp
from glow_mlir.dialects.properties import flag, integer, ints, number, text
from glow_mlir.dialects.windows import Window
from glow_mlir.errors import ExecutionError
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import semantics
from glow_mlir.support.dataclass import dataclass

CUBIC_COEFFICIENT = -0.75


@dataclass(frozen=True)
class Tap:
    """One contributing element per position: along one axis, or, as an offset, in an image."""

    index: np.ndarray
    """The index of the element, in range."""
    weight: Any
    """Its weight."""
    inside: Any = True
    """Whether the element exists; elements outside are zero."""


def cubic_weights(t: Any) -> list[Any]:
    """The weights of the elements at -1, 0, 1 and 2 for a position `t` in [0, 1)."""
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
"""Mode → first contributing element, relative to the one in front of a position, and the weights of all."""


def _in_elements(x: np.ndarray, size: int, aligned: bool) -> np.ndarray:
    """Convert positions in [-1, 1] to element coordinates."""
    return (x + 1) / 2 * (size - 1) if aligned else ((x + 1) * size - 1) / 2


def _reflected(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Reflect positions at both borders until they are in between."""
    length = high - low
    if length == 0:
        return np.full_like(x, low)
    beyond = np.where(x < low, low - x, x - high)
    times = np.trunc(beyond / length)
    rest = beyond - times * length
    from_low = (x < low) != (np.mod(times, 2) == 1)
    return np.where((x < low) | (x > high), np.where(from_low, low + rest, high - rest), x)


def _positions(op: GridSampleOp, grid: np.ndarray, size: int) -> np.ndarray:
    """Convert the grid to element coordinates along an axis, within reach of the padding."""
    aligned = flag(op.align_corners)
    x = _in_elements(grid, size, aligned)
    if text(op.mode) == "nearest":
        x = np.rint(x)
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if text(op.padding) == "border":
        return np.where((x < low) | (x > high), np.clip(x, 0, size - 1), x)
    return _reflected(x, x.dtype.type(low), x.dtype.type(high)) if text(op.padding) == "reflection" else x


def along_axis(op: GridSampleOp, grid: np.ndarray, size: int) -> list[Tap]:
    """The contributing elements along an axis for each number of the grid."""
    x = _positions(op, grid, size)
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
    Sum over all taps, in f64 for floats: `x` is [N, spatial…, C], a tap of an axis [N, places…].

    A single tap moves elements unchanged.
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


def as_positions(numbers: np.ndarray) -> np.ndarray:
    """Convert numbers to the type of positions: their own, f32 for 16-bit floats."""
    return numbers if numbers.dtype.itemsize > 2 else numbers.astype(np.float32)


@semantics(GridSampleOp)
def grid_sample(op: GridSampleOp, x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Sample the image; rows of the grid have the last axis first."""
    positions = as_positions(grid)
    with np.errstate(all="ignore"):
        axes = [along_axis(op, positions[..., -1 - axis], size) for axis, size in enumerate(x.shape[1:-1])]
        return sampled(x, axes)


def linear_taps(x: np.ndarray, size: int) -> list[Tap]:
    """The two elements around each position; elements outside are zero."""
    before = np.where(np.isnan(x), -8, np.clip(np.floor(x), -8, size + 8)).astype(np.int64)
    fraction = wide(x - np.floor(x))
    taps = ((before, 1 - fraction), (before + 1, fraction))
    return [Tap(np.clip(i, 0, size - 1), weight, (i >= 0) & (i < size)) for i, weight in taps]


def _along(count: int, step: int, behind: int) -> np.ndarray:
    """Multiples of `step` along an axis, followed by that many unit axes."""
    return (np.arange(count) * step).reshape((count, *(1,) * behind))


def _columns(window: Window, groups: int, x: np.ndarray, offset: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The sampled elements of all windows, in f64: [N, outputs…, kernel, C]."""
    axes = len(window.kernel)
    outputs = offset.shape[1:-1]
    moved = as_positions(offset).reshape(*offset.shape[:-1], groups, *window.kernel, axes)
    positions: list[np.ndarray] = []
    for axis in range(axes):
        here = _along(outputs[axis], window.strides[axis], 2 * axes - axis) - window.pads[axis]
        here = here + _along(window.kernel[axis], window.dilations[axis], axes - 1 - axis)
        positions.append((here.astype(moved.dtype) + moved[..., axis]).reshape(*offset.shape[:-1], groups, -1))
    channels = x.shape[-1] // groups
    parts: list[np.ndarray] = []
    for group in range(groups):
        image = wide(x[..., group * channels : (group + 1) * channels])
        taps = [
            linear_taps(coordinate[..., group, :], size)
            for coordinate, size in zip(positions, x.shape[1:-1], strict=True)
        ]
        parts.append(sampled(image, taps))
    if mask is not None:
        factors = wide(mask).reshape(*mask.shape[:-1], groups, -1)
        parts = [part * factors[..., group, :, None] for group, part in enumerate(parts)]
    return np.concatenate(parts, -1)


@semantics(DeformColumnsOp)
def deform_columns(op: DeformColumnsOp, x: np.ndarray, offset: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Sample the elements of all windows."""
    return _columns(op.window(), integer(op.offset_group), x, offset, mask).astype(x.dtype)


@semantics(DeformConvOp)
def deform_conv(
    op: DeformConvOp,
    x: np.ndarray,
    filter_: np.ndarray,
    offset: np.ndarray,
    bias: np.ndarray | None,
    mask: np.ndarray | None,
) -> np.ndarray:
    """Multiply the sampled elements by the filter, per group of channels."""
    columns = _columns(op.window(), integer(op.offset_group), x, offset, mask)
    groups = integer(op.group)
    parts = np.split(columns, groups, -1)
    weights = np.split(wide(filter_).reshape(len(filter_), -1, filter_.shape[-1]), groups)
    result = np.concatenate(
        [np.tensordot(part, weight, ([-2, -1], [1, 2])) for part, weight in zip(parts, weights, strict=True)], -1
    )
    return (result if bias is None else result + wide(bias)).astype(x.dtype)


@dataclass(frozen=True)
class _Samples:
    """
    The samples of all cells along one axis of a region that may be in the image: `elements` [cells, samples, 2] around
    each, their `weights`, whether they are in the image, and whether they exist: a cell has `count` samples in all.
    """

    elements: np.ndarray
    weights: np.ndarray
    inside: np.ndarray
    exists: np.ndarray
    count: int

    @staticmethod
    def of(start: Any, length: Any, cells: int, size: int, ratio: int) -> _Samples:
        """The samples of an axis of `size` elements in the image."""
        step = length / cells
        type_: Any = step.dtype.type
        count = ratio or int(np.nan_to_num(np.ceil(np.clip(step, 0, _MAX_SAMPLES)), nan=0))
        starts = start + np.arange(cells).astype(type_) * step
        numbers = _near(starts, step / type_(max(count, 1)), size, count)
        positions = starts[:, None] + (numbers.astype(type_) + type_(0.5)) * step / type_(max(count, 1))
        exists = numbers < count
        inside = (positions >= -1) & (positions <= size) & exists
        x = np.clip(np.nan_to_num(positions), 0, size - 1)
        low = np.floor(x).astype(np.int64)
        fraction = wide(x - np.floor(x))
        elements = np.stack([low, np.minimum(low + 1, size - 1)], -1)
        return _Samples(elements, np.stack([1 - fraction, fraction], -1), inside, exists, count)

    @property
    def has_others(self) -> np.ndarray:
        """Whether a cell has further samples outside of the image."""
        return self.exists.sum(1) < self.count


_MAX_SAMPLES = (1 << 31) - 1
"""Maximum number of samples of a cell along an axis."""

_SLACK = 2.0**-20
"""Relative error of a position after a few operations that round to f32."""


def _near(starts: np.ndarray, apart: Any, size: int, count: int) -> np.ndarray:
    """Numbers [cells, N] of samples at distances `apart`, a superset of those in the image."""
    if not apart or count <= 1:
        return np.broadcast_to(np.arange(count), (len(starts), count))
    ends = np.nan_to_num((np.array([-1.0, size])[:, None] - wide(starts)) / wide(apart), nan=0.0)
    slack = np.abs(ends).sum(0) * _SLACK + 3
    first = np.clip(ends.min(0) - slack, 0, count).astype(np.int64)
    last = np.clip(ends.max(0) + slack, 0, count).astype(np.int64)
    return first[:, None] + np.arange(int((last - first).max(initial=0)))


def _region(op: RoiAlignOp, image: np.ndarray, roi: np.ndarray) -> np.ndarray:
    """Compute the cells of one region, in f64."""
    type_ = roi.dtype.type
    half, cells = flag(op.half_pixel), ints(op.output_shape)
    x1, y1, x2, y2 = roi * type_(number(op.spatial_scale)) - type_(0.5 if half else 0.0)
    lengths = [y2 - y1, x2 - x1] if half else [np.fmax(y2 - y1, type_(1)), np.fmax(x2 - x1, type_(1))]
    ratio = integer(op.sampling_ratio)
    rows, columns = (
        _Samples.of(start, length, count, size, ratio)
        for start, length, count, size in zip((y1, x1), lengths, cells, image.shape, strict=False)
    )
    chosen = image[rows.elements[:, None, :, None, :, None], columns.elements[None, :, None, :, None, :]]
    weights = rows.weights[:, None, :, None, :, None] * columns.weights[None, :, None, :, None, :]
    inside = rows.inside[:, None, :, None] & columns.inside[None, :, None, :]
    weighted = np.where(inside[..., None, None, None], chosen * weights[..., None], 0.0)
    number_of_samples = rows.count * columns.count
    if text(op.mode) == "max":
        exists = rows.exists[:, None, :, None] & columns.exists[None, :, None, :]
        existing: np.ndarray = np.where(exists[..., None, None, None], weighted, -np.inf)
        found: np.ndarray = existing.max((2, 3, 4, 5), initial=-np.inf)
        has_others = (rows.has_others[:, None] | columns.has_others)[..., None]
        found = np.where(has_others, np.maximum(found, 0.0), found)
        return found if number_of_samples else np.zeros_like(found)
    return weighted.sum((2, 3, 4, 5)) / max(number_of_samples, 1)


@semantics(RoiAlignOp)
def roi_align(op: RoiAlignOp, x: np.ndarray, rois: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Compute one region after the other."""
    if ((images < 0) | (images >= len(x))).any():
        raise ExecutionError(op.FAILURE, node=location_name(op.location))
    regions = [_region(op, wide(x[image]), roi) for image, roi in zip(images, as_positions(rois), strict=True)]
    shape = (len(rois), *ints(op.output_shape), x.shape[-1])
    return np.reshape(regions, shape).astype(x.dtype)


def _bounds(start: Any, end: Any, cells: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The first element of each cell along one axis of a region, and one past its last, clipped to the image."""
    type_: Any = start.dtype.type
    first, last = _rounded_away(start), _rounded_away(end)
    length = last - first + type_(1)
    step = (length if length >= 1 else type_(1)) / type_(cells)
    positions = np.arange(cells).astype(start.dtype)
    low, high = np.floor(positions * step) + first, np.ceil((positions + 1) * step) + first
    limited = (np.where(bound > 0, np.where(bound < size, bound, size), 0) for bound in (low, high))
    low, high = (bound.astype(np.int64) for bound in limited)
    return low, high


def _rounded_away(value: Any) -> Any:
    """Round to nearest, ties away from zero."""
    whole = np.trunc(value)
    part = value - whole
    return whole + (part >= 0.5).astype(value.dtype) - (part <= -0.5).astype(value.dtype)


@semantics(RoiPoolOp)
@np.errstate(invalid="ignore")
def roi_pool(op: RoiPoolOp, x: np.ndarray, rois: np.ndarray) -> np.ndarray:
    """Compute one cell after the other."""
    positions = as_positions(rois)
    images, scale = positions[:, 0], positions.dtype.type(number(op.spatial_scale))
    if not ((images > -1) & (images < len(x)) | np.isnan(images)).all():
        raise ExecutionError(op.FAILURE, node=location_name(op.location))
    rows, columns = ints(op.output_shape)
    found = np.zeros((len(rois), rows, columns, x.shape[-1]), x.dtype)
    for region, (image, *corners) in enumerate(positions):
        x1, y1, x2, y2 = (corner * scale for corner in corners)
        source = x[int(np.nan_to_num(image))]
        for row, (top, bottom) in enumerate(zip(*_bounds(y1, y2, rows, x.shape[1]), strict=True)):
            for column, (left, right) in enumerate(zip(*_bounds(x1, x2, columns, x.shape[2]), strict=True)):
                if top < bottom and left < right:
                    found[region, row, column] = source[top:bottom, left:right].max((0, 1))
    return found

"""Semantics of pooling."""

from __future__ import annotations

import math

import numpy as np

from glow_mlir.dialects.glow_high.pooling import Images, MaxPoolWithIndicesOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.interpreter.convolution import channels_last, windows_of
from glow_mlir.ir.registry import semantics
from glow_mlir.support.dtypes import is_float_dtype


def _patches(op: Images, x: np.ndarray, fill: float) -> tuple[np.ndarray, tuple[int, ...]]:
    """All windows with the kernel axes last, and these axes."""
    image = x if is_channels_last(op.layout) else channels_last(x)
    window = Images.window(op)
    patches = windows_of(image, window, fill, window.outputs(image.shape[1:-1]))
    return patches, tuple(range(-len(window.kernel), 0))


def _restored(op: Images, result: np.ndarray) -> np.ndarray:
    return result if is_channels_last(op.layout) else np.moveaxis(result, -1, 1)


@semantics(MaxPoolWithIndicesOp)
def max_pool_with_indices(op: MaxPoolWithIndicesOp, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first position in each window with the maximum, padding excluded."""
    first = np.moveaxis(x, -1, 1) if is_channels_last(op.layout) else x
    spatial = first.shape[2:]
    order = "F" if flag(op.column_major) else "C"
    positions = np.arange(math.prod(spatial)).reshape(spatial, order=order)
    planes = np.arange(math.prod(first.shape[:2])).reshape(*first.shape[:2], *(1,) * len(spatial))
    numbers = planes * (0 if flag(op.by_channel) else positions.size) + positions
    numbers = np.moveaxis(numbers, 1, -1) if is_channels_last(op.layout) else numbers
    lowest = -np.inf if is_float_dtype(x.dtype) else np.iinfo(x.dtype).min
    (patches, axes), (indices, _) = _patches(op, x, lowest), _patches(op, numbers, -1)
    largest = patches.max(axis=axes, keepdims=True)
    flat = (*patches.shape[: -len(axes)], -1)
    candidates = ((patches == largest) | (patches != patches)) & (indices >= 0)
    chosen = candidates.reshape(flat).argmax(-1)[..., None]
    index = np.take_along_axis(indices.reshape(flat), chosen, -1)[..., 0]
    return _restored(op, largest.reshape(flat)[..., 0]), _restored(op, index)

"""Layout of arrays in memory shared by several processes; all processes compute the same layout."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from glow_mlir.support.dtypes import named_dtype

ALIGNMENT = 64
"""The alignment of arrays in bytes, so that no two arrays share a cache line."""

Kind = tuple[np.dtype[Any], tuple[int, ...]]
"""The element type and the shape of an array."""

Layout = list[tuple[str, str, tuple[int, ...], int]]
"""The name, element type, shape and offset of each array; it is sent between processes."""


def aligned(position: int) -> int:
    """The first aligned offset from a position on."""
    return -(-position // ALIGNMENT) * ALIGNMENT


def layout_of(kinds: Iterable[tuple[str, Kind]], begin: int = 0) -> tuple[Layout, int]:
    """The offsets of arrays laid out one after another from an offset on, and the end of the last."""
    found: Layout = []
    for name, (dtype, shape) in kinds:
        begin = aligned(begin)
        found.append((name, dtype.name, shape, begin))
        begin += math.prod(shape) * dtype.itemsize
    return found, begin


def arrays_in(memory: np.ndarray, layout: Layout) -> dict[str, np.ndarray]:
    """The arrays in a block of bytes, without a copy."""
    found: dict[str, np.ndarray] = {}
    for name, kind, shape, begin in layout:
        dtype = named_dtype(kind)
        found[name] = memory[begin : begin + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
    return found


def write_arrays(memory: np.ndarray, arrays: Iterable[tuple[str, np.ndarray]], begin: int = 0) -> Layout:
    """Copy arrays into bytes, from an offset on; return their layout."""
    given = dict(arrays)
    layout, _ = layout_of(kinds_of(given.items()), begin)
    for name, position in arrays_in(memory, layout).items():
        position[...] = given[name]
    return layout


def kinds_of(arrays: Iterable[tuple[str, np.ndarray]]) -> Iterable[tuple[str, Kind]]:
    """The element types and shapes of arrays."""
    return ((name, (array.dtype, array.shape)) for name, array in arrays)

"""Memory for buffers and outputs, aligned to lines of the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

ALIGNMENT = 64
"""The alignment of memory in bytes, that of the widest loads and of lines of the cache."""

MIN_ALIGNED = 1 << 16
"""The number of bytes from which outputs are aligned, so that others can take over their memory."""


def aligned(size: int, make: Callable[..., np.ndarray] = np.empty) -> np.ndarray:
    """`size` bytes aligned to 64, made by `make`; uninitialised by default."""
    raw = make(size + ALIGNMENT, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT
    return raw[begin : begin + size]


def new_array(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray:
    """An uninitialised array for an output; the memory of a large one is aligned to 64 bytes."""
    return maker_of(shape, dtype)()


def maker_of(shape: Sequence[int], dtype: np.dtype[Any]) -> Callable[[], np.ndarray]:
    """A function that makes such arrays."""
    size = prod(shape) * dtype.itemsize
    if size < MIN_ALIGNED:
        return partial(np.empty, shape, dtype)
    return lambda: aligned(size).view(dtype).reshape(shape)

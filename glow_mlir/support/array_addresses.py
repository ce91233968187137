"""Addresses of arrays, and arrays at addresses."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

_buffer: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer  # Arrays are buffers, whatever annotations say.
_address = ctypes.addressof


def address_of(array: np.ndarray) -> int:
    """The address of the first element of an array."""
    try:
        return _address(_buffer(array))
    except (TypeError, ValueError):  # Read-only, not C-contiguous, empty, or of a dtype that numpy lacks.
        return array.ctypes.data


def addresses_of(arrays: Sequence[np.ndarray]) -> list[int]:
    """`address_of` of some arrays, in less time than one by one."""
    try:
        return [_address(_buffer(array)) for array in arrays]
    except (TypeError, ValueError):
        return list(map(address_of, arrays))


def array_at(address: int, dtype: np.dtype[Any], shape: Sequence[int], owner: object = None) -> np.ndarray:
    """
    The C-contiguous array at an address, which must stay valid while the array exists; the array keeps `owner` alive.
    """
    size = math.prod(shape) * dtype.itemsize
    memory = (ctypes.c_uint8 * size).from_address(address)
    setattr(memory, "owner", owner)
    return np.frombuffer(cast("Any", memory), np.uint8).view(dtype).reshape(tuple(shape))

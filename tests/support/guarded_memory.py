"""Arrays between pages that cannot be read nor written: a stray access is a signal."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_FAILED = ctypes.c_void_p(-1).value or 0
_PAGE = mmap.PAGESIZE
_NO_ACCESS = 0

JUNK = 0x5A
"""What fresh memory is full of: large floats and integers that no computation gives."""


@dataclass
class GuardedMemory:
    """
    Memory for arrays, given back by `close`; arrays must not be used then.

    An array ends where the guard behind it begins, or, with `at_end` false, begins where that in front of it ends.
    """

    at_end: bool = True
    pieces: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def array(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """A C-contiguous array full of junk; raises `MemoryError` where there is no room."""
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        room = -(-size // _PAGE) * _PAGE
        whole = room + 2 * _PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start: int = _LIBC.mmap(None, whole, _NO_ACCESS, flags, -1, 0) if whole < 1 << 47 else _FAILED
        if start == _FAILED:
            raise MemoryError(f"{size} bytes")
        self.pieces.append((start, whole))
        if room and _LIBC.mprotect(start + _PAGE, room, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"{size} bytes")
        begin = start + _PAGE + (room - size if self.at_end else 0)
        flat = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(begin))
        flat.fill(JUNK)
        return flat.view(dtype).reshape(tuple(shape))

    def bytes(self, size: int, make: Callable[..., Any] = np.empty) -> np.ndarray:
        """In the place of `glow_mlir.runtime.machine_code.aligned`: bytes that start at a multiple of 64."""
        array = self.array((-(-size // 64) * 64,), np.dtype(np.uint8))[:size]
        if make is np.zeros:
            array.fill(0)
        return array

    def close(self) -> None:
        """Give the memory back."""
        for start, whole in self.pieces:
            _LIBC.munmap(start, whole)
        self.pieces.clear()

"""
Constants of equal content that several executables of a process read, in memory once.

Each executable has its constants in one region, at offsets that its code knows, and where regions differ, the large
constants in them are often the same: what is packed for a kernel need not depend on the size of a batch. Their pages
are mapped into each region (`mremap` of no bytes, which Linux has), so that code needs no further pointers. Elsewhere
each executable has its own.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakValueDictionary, finalize

import numpy as np

from glow_mlir.support.forks import reset_in_forks

PAGE = 1 << 12
"""Bytes of a page; large constants start at a multiple of them."""

MIN_SHARED = 1 << 16
"""Bytes of a constant from which on it is shared: it has a mapping of its own, of which a process has some 65,000."""

_MAY_MOVE, _FIXED = 1, 2
_REMOVE = 9
"""`MADV_REMOVE`: gives back memory that has no file behind it."""

IS_SUPPORTED = sys.platform == "linux" and mmap.PAGESIZE == PAGE


def is_shared(nbytes: int) -> bool:
    """Whether a constant of so many bytes is shared, and so starts at a multiple of a page."""
    return nbytes >= MIN_SHARED


class SharedPages:
    """Pages with the content of a constant, mapped as long as this object lives, or a region that they are part of."""

    def __init__(self, address: int, nbytes: int) -> None:
        """Map the pages that are at an address once more; raises `OSError` where that is impossible."""
        self.nbytes = nbytes
        self.address = _remap(address, nbytes, _MAY_MOVE, None)
        finalize(self, _system().munmap, self.address, nbytes).atexit = False

    def content(self) -> np.ndarray:
        """The bytes, to read only, as long as this object lives."""
        return _bytes_at(self.address, self.nbytes)

    def map_to(self, address: int) -> None:
        """Take the place of other pages; raises `OSError` where that is impossible."""
        _remap(self.address, self.nbytes, _MAY_MOVE | _FIXED, address)


_KNOWN: WeakValueDictionary[tuple[int, int], SharedPages] = WeakValueDictionary()
"""Bytes and checksum of a content → its pages."""


class _Turn:
    """Lets threads look and map one after the other."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Take a new lock, in a child process in which nobody holds that of before."""
        self.lock = threading.Lock()


_TURN = reset_in_forks(_Turn())


def share(region: np.ndarray, extents: Sequence[tuple[int, int]], in_file: bool) -> list[SharedPages]:
    """
    Let constants of a region, at those offsets and of so many bytes, be in memory once for all regions of the process.

    The region is mapped shared, from a file that does not change or (unless `in_file`) from memory, and nobody reads it
    yet. Returns the pages of its constants, with which it may be compared to others.
    """
    found: list[SharedPages] = []
    if not IS_SUPPORTED:
        return found
    begin = region.ctypes.data
    with _TURN.lock:
        for offset, size in extents:
            whole = size // PAGE * PAGE
            if (begin + offset) % PAGE or not whole:
                continue  # A region of another backend may lie anywhere.
            try:
                pages = _shared(region[offset : offset + whole], in_file)
            except OSError:  # The process may have too many mappings.
                break
            found += [] if pages is None else [pages]
    return found


def _shared(content: np.ndarray, in_file: bool) -> SharedPages | None:
    """
    The pages of a constant, in the place of its own where they are known.

    `None` where another content has its checksum; raises `OSError` where they cannot be mapped.
    """
    address, nbytes = content.ctypes.data, content.nbytes
    key = (nbytes, zlib.crc32(content.data))
    known = _KNOWN.get(key)
    if known is None:
        known = _KNOWN[key] = SharedPages(address, nbytes)
        return known
    if not np.array_equal(known.content(), content):
        return None
    try:
        if not in_file:
            _system().madvise(address, nbytes, _REMOVE)
        known.map_to(address)
    except OSError:
        if not in_file:
            content[...] = known.content()
        raise
    return known


def _remap(address: int, nbytes: int, flags: int, target: int | None) -> int:
    """Map shared pages once more, at `target` or wherever there is room."""
    found: int = _system().mremap(address, 0, nbytes, flags, target)
    if found == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "shared constants cannot be mapped")
    return found


def _bytes_at(address: int, nbytes: int) -> np.ndarray:
    array = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    array.flags.writeable = False
    return array


@cache
def _system() -> Any:
    """The calls of the system, which Python's `mmap` does not have."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mremap.restype = ctypes.c_void_p
    library.mremap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library

"""
Share equal constants between the executables of a process.

Each executable has its constants in one region, at offsets known to its code. Regions differ, but large constants in
them are often equal: packed weights, for example, need not depend on the batch size. Their pages are mapped into each
region (`mremap` with size 0, on Linux), so code needs no further pointers. On other systems, each executable has its
own constants.
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
"""The page size in bytes; large constants are aligned to it."""

MIN_SHARED = 1 << 16
"""
The minimum size in bytes of shared constants: each has a mapping of its own, and a process is limited to about 65,000.
"""

_MAY_MOVE, _FIXED = 1, 2
_REMOVE = 9
"""`MADV_REMOVE`: frees memory that is not backed by a file."""

IS_SUPPORTED = sys.platform == "linux" and mmap.PAGESIZE == PAGE


def is_shared(nbytes: int) -> bool:
    """Whether a constant of this size is shared, and therefore aligned to a page."""
    return nbytes >= MIN_SHARED


class SharedPages:
    """Pages with the contents of a constant, mapped as long as this object or a region that contains them is alive."""

    def __init__(self, address: int, nbytes: int) -> None:
        """Map the pages at an address a second time; raises `OSError` if that fails."""
        self.nbytes = nbytes
        self.address = _remap(address, nbytes, _MAY_MOVE, None)
        finalize(self, _system().munmap, self.address, nbytes).atexit = False

    def content(self) -> np.ndarray:
        """The bytes, read-only, valid as long as this object is alive."""
        return _bytes_at(self.address, self.nbytes)

    def map_to(self, address: int) -> None:
        """Replace the pages at an address; raises `OSError` if that fails."""
        _remap(self.address, self.nbytes, _MAY_MOVE | _FIXED, address)


_KNOWN: WeakValueDictionary[tuple[int, int], SharedPages] = WeakValueDictionary()
"""Size and checksum of a content → its pages."""


class _Turn:
    """A lock for comparing and mapping constants."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Take a new lock in a child process, because the old one may be held."""
        self.lock = threading.Lock()


_TURN = reset_in_forks(_Turn())


def share(region: np.ndarray, extents: Sequence[tuple[int, int]], in_file: bool) -> list[SharedPages]:
    """
    Share constants of a region, at the given offsets and of the given sizes, with all regions of the process.

    The region is a shared mapping of an unchanging file or (unless `in_file`) of memory, and nothing reads it yet.
    Returns the pages of its constants, which later regions are compared with.
    """
    found: list[SharedPages] = []
    if not IS_SUPPORTED:
        return found
    begin = region.ctypes.data
    with _TURN.lock:
        for offset, size in extents:
            whole = size // PAGE * PAGE
            if (begin + offset) % PAGE or not whole:
                continue  # Regions of other backends may be unaligned.
            try:
                pages = _shared(region[offset : offset + whole], in_file)
            except OSError:  # For example too many mappings.
                break
            found += [] if pages is None else [pages]
    return found


def _shared(content: np.ndarray, in_file: bool) -> SharedPages | None:
    """
    The pages of a constant, replaced by known equal pages if there are any.

    `None` if another content has its checksum; raises `OSError` if the pages cannot be mapped.
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
    """Map shared pages a second time, at `target` or at any free address."""
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
    """System calls that Python's `mmap` lacks."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mremap.restype = ctypes.c_void_p
    library.mremap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library

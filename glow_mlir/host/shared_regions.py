"""Memory that two processes see, in which tensors go from one to the other."""

from __future__ import annotations

import mmap
import os
import weakref
from typing import Any

import numpy as np

from glow_mlir.runtime.array_layout import ALIGNMENT, Layout
from glow_mlir.runtime.cache import bytes_of
from glow_mlir.runtime.memory_file import MemoryFile
from glow_mlir.support.array_addresses import array_at
from glow_mlir.support.dtypes import named_dtype


class Region:
    """Bytes that two processes see."""

    def __init__(self, memory: np.ndarray, descriptor: int = -1) -> None:
        self.memory = memory
        self.descriptor = descriptor
        """The descriptor of the file that another process maps; -1 if this process does not own it."""
        if descriptor >= 0:
            weakref.finalize(self, os.close, descriptor).atexit = False

    @staticmethod
    def made(size: int) -> Region:
        """A new one of so many bytes; raises `OSError` where there is no room."""
        with MemoryFile() as file:
            memory = file.reserve(max(size, ALIGNMENT))
            return Region(memory, os.dup(file.holding(memory)))

    @staticmethod
    def mapped(descriptor: int, size: int) -> Region:
        """The region of another process, which has sent its file descriptor."""
        try:
            return Region(bytes_of(mmap.mmap(descriptor, size)))
        finally:
            os.close(descriptor)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.memory.nbytes


class Regions:
    """Regions for calls, each of which is used again when nobody has an array in it any more."""

    def __init__(self) -> None:
        self._free: list[Region] = []

    def taken(self, size: int) -> tuple[Region, list[Region]]:
        """A region of so many bytes at least, and those that are given up as too small; raises `OSError`."""
        small: list[Region] = []
        while self._free:
            region = self._free.pop()
            if region.size >= size:
                return region, small
            small.append(region)
        return Region.made(size), small

    def give_back(self, region: Region) -> None:
        """Release the contents of a region."""
        self._free.append(region)

    def arrays(self, region: Region, layout: Layout) -> dict[str, np.ndarray]:
        """The arrays that lie in a region, as long as somebody has one of which it is not used again."""
        use = _Use(region)
        weakref.finalize(use, self._free.append, region).atexit = False
        start: Any = region.memory.ctypes.data
        return {name: array_at(start + begin, named_dtype(kind), shape, use) for name, kind, shape, begin in layout}


class _Use:
    """Somebody has arrays in a region."""

    def __init__(self, region: Region) -> None:
        self.region = region

"""Memory shared by two processes, to exchange tensors."""

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
    """Bytes shared by two processes."""

    def __init__(self, memory: np.ndarray, descriptor: int = -1) -> None:
        self.memory = memory
        self.descriptor = descriptor
        """The file descriptor that another process maps; -1 if this process does not own it."""
        if descriptor >= 0:
            weakref.finalize(self, os.close, descriptor).atexit = False

    @staticmethod
    def made(size: int) -> Region:
        """A new region of this size; raises `OSError` if there is no room."""
        with MemoryFile() as file:
            memory = file.reserve(max(size, ALIGNMENT))
            return Region(memory, os.dup(file.holding(memory)))

    @staticmethod
    def mapped(descriptor: int, size: int) -> Region:
        """The region of another process, from the file descriptor it sent."""
        try:
            return Region(bytes_of(mmap.mmap(descriptor, size)))
        finally:
            os.close(descriptor)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.memory.nbytes


class Regions:
    """Regions for calls, reused when no array in them is referenced any more."""

    def __init__(self) -> None:
        self._free: list[Region] = []

    def taken(self, size: int) -> tuple[Region, list[Region]]:
        """A region of at least this size, and discarded smaller regions; raises `OSError`."""
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
        """The arrays in a region, which is not reused while any of them is referenced."""
        use = _Use(region)
        weakref.finalize(use, self._free.append, region).atexit = False
        start: Any = region.memory.ctypes.data
        return {name: array_at(start + begin, named_dtype(kind), shape, use) for name, kind, shape, begin in layout}


class _Use:
    """Keeps a region in use while its arrays are referenced."""

    def __init__(self, region: Region) -> None:
        self.region = region

"""A file in memory, used to pass arrays to another process."""

from __future__ import annotations

import mmap
import os
import tempfile
from types import TracebackType
from typing import Self

import numpy as np

from glow_mlir.runtime.cache import bytes_of


class MemoryFile:
    """An unnamed file: in memory if the system supports it, otherwise in the folder of temporary files."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._mapped: np.ndarray | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def reserve(self, size: int) -> np.ndarray:
        """Make the file this long, and map it as zero bytes; raises `OSError` if there is no room."""
        if not size:
            return np.empty(0, np.uint8)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = _new_file()
        os.ftruncate(self._descriptor, size)
        self._mapped = bytes_of(mmap.mmap(self._descriptor, size))
        return self._mapped

    def holding(self, array: np.ndarray) -> int:
        """
        The descriptor of the file after writing the bytes of an array, unless the array is the mapped file itself.
        """
        if array.nbytes and (self._mapped is None or not np.shares_memory(array, self._mapped)):
            self.reserve(array.nbytes)[...] = array
        return self._descriptor


def _new_file() -> int:
    """The descriptor of an unnamed file."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("glow-constants")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

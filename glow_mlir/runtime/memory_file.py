"""A file in memory, by which a process hands arrays over to another one."""

from __future__ import annotations

import mmap
import os
import tempfile
from types import TracebackType
from typing import Self

import numpy as np

from glow_mlir.runtime.cache import bytes_of


class MemoryFile:
    """A file without a name: in memory where the system has that, else in the folder of temporary files."""

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
        """So many zero bytes in it; raises `OSError` where there is no room."""
        if not size:
            return np.empty(0, np.uint8)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = _new_file()
        os.ftruncate(self._descriptor, size)
        self._mapped = bytes_of(mmap.mmap(self._descriptor, size))
        return self._mapped

    def holding(self, array: np.ndarray) -> int:
        """The descriptor of the file, with the bytes of an array in it, which may be those that it has."""
        if array.nbytes and (self._mapped is None or not np.shares_memory(array, self._mapped)):
            self.reserve(array.nbytes)[...] = array
        return self._descriptor


def _new_file() -> int:
    """The descriptor of a file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("glow-constants")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

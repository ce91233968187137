"""Outputs of direct calls: the memory that code writes to, and the arrays that callers get."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.layouts import Buffers, OutputShape, made, result
from glow_mlir.support.symbols import Symbol

Numbers = ctypes.Array[ctypes.c_int64]
"""The values of symbols after a call, in the order of the entry."""

MAX_KEPT = 256
"""The number of shapes of an output that are remembered."""


class SizedOutput:
    """
    An output that code lays out for a larger shape, or whose shape the call computes.

    `memory` gives it the same memory as `Buffers.output`, and `taken` the same array as `layouts.result`, in less time.
    """

    def __init__(
        self, binding: Binding, found: OutputShape | None, symbols: Sequence[Symbol], buffers: Buffers
    ) -> None:
        """`found` is the shape before the call, with maxima for what the call computes; `None` if it is fixed."""
        found = found or OutputShape.of(binding, {})
        self._binding = binding
        self._symbols = symbols
        self._is_kept = not found.is_dense and found.is_large
        self._shape = found.shape if found.is_dense else binding.shape
        self._buffers = buffers
        self._known: dict[bytes, OutputShape] = {}

    def memory(self) -> np.ndarray:
        """An array for the call to write to; raises `OutOfMemoryError`."""
        return self._buffers.kept(self._binding) if self._is_kept else made(self._binding, self._shape)

    def taken(self, memory: np.ndarray, numbers: Numbers) -> np.ndarray:
        """The output in memory that a call with these values of symbols has written."""
        if (found := self._known.get(key := bytes(numbers))) is None:
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            values = {symbol.name: int(number) for symbol, number in zip(self._symbols, numbers, strict=True)}
            found = self._known[key] = OutputShape.of(self._binding, values)
        return result(self._binding, memory, found)

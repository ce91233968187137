"""The entries of a table for packed values, as values of a byte."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.sub_byte_values import unpack_sub_bytes

BYTE_BITS = 8
"""Bits of an entry."""

_HALF = 1 << BYTE_BITS - 1
"""What is added to entries, which are signed."""


class TableEntries(Deferred):
    """
    For bytes `[N, n]` with two values of 4 bits each, the entries of a table, which has 16 from -128 to 127.

    Entries are unsigned, 128 larger: `[N, 2n]` of u8.
    """

    def __init__(self, packed: Deferred, table: Sequence[int]) -> None:
        self.packed, self.table, self.dtype = packed, tuple(table), np.dtype(np.uint8)
        self.shape = (packed.shape[0], 2 * packed.shape[1])

    @property
    def recipe(self) -> str:
        return f"entries {self.table} {self.packed.digest}"

    @property
    def sources(self) -> Sequence[Deferred]:
        return (self.packed,)

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        return TableEntries(sources[0], self.table)

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        if axis:
            return self.array()[:, begin:end]
        numbers = unpack_sub_bytes(self.packed.part(0, begin, end), 4)
        return np.array([entry + _HALF for entry in self.table], np.uint8)[numbers]

    def separable(self, axis: int) -> bool:
        return axis == 0 and self.packed.separable(0)

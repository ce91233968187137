"""Tensors of GGUF files: as numbers, and as operands of products that are computed from the file on demand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.constants.layouts import CodeCells
from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.constants.sub_byte_values import pack_planes, pack_split_nibbles, pack_sub_bytes
from glow_mlir.frontends.gguf.block_types import BlockType, Unpacked
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype


@dataclass(frozen=True)
class GgufTensor:
    """A tensor: `raw` are the bytes of its rows [sizes…, bytes], a view of the mapped file."""

    name: str
    shape: tuple[int, ...]
    type: BlockType
    raw: np.ndarray

    @property
    def is_quantized(self) -> bool:
        """Whether its elements are quantized by blocks."""
        return self.type.unpack is not None

    def array(self) -> np.ndarray:
        """Its elements: f32 for quantized types, and otherwise a view of the file in its own type."""
        if self.type.unpack is None:
            return self.raw.view(named_dtype(self.type.dtype)).reshape(self.shape)
        return self.type.unpack(self._blocks(self.raw)).numbers().reshape(self.shape)

    def _blocks(self, rows: np.ndarray) -> np.ndarray:
        return rows.reshape(-1, self.type.nbytes)


BYTE_BITS = 8
"""Bits of integers that need no packing."""


class RowsOfBlocks(Deferred):
    """
    A part of what the blocks of a matrix consist of, for each row: `made` of unpacked blocks.

    `rows` are the bytes of the rows, a view of the file. `order` are the numbers of the rows in the order in which the
    array has them, if that is another.
    """

    def __init__(
        self,
        rows: Deferred,
        type_: BlockType,
        part: str,
        width: int,
        dtype: np.dtype[Any],
        order: np.ndarray | None = None,
    ) -> None:
        self.rows, self.type, self.name, self.order = rows, type_, part, order
        self.shape, self.dtype = (rows.shape[0] if order is None else len(order), width), dtype

    @property
    def recipe(self) -> str:
        order = "" if self.order is None else Stored(self.order).digest
        return f"gguf {self.type.name} {self.name} {self.rows.digest} {order}"

    @property
    def sources(self) -> tuple[Deferred, ...]:
        return (self.rows,)

    def with_sources(self, sources: Any) -> Deferred:
        return RowsOfBlocks(sources[0], self.type, self.name, self.shape[1], self.dtype, self.order)

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        if axis:
            return self.array()[:, begin:end]
        unpacked = self._unpacked(begin, end)
        if self.name == "quantized":
            return _packed(unpacked, self.type, end - begin)
        return getattr(unpacked, self.name)().reshape(end - begin, self.shape[1])

    def _unpacked(self, begin: int, end: int) -> Unpacked:
        """The blocks of the rows [begin, end)."""
        rows = self.rows.part(0, begin, end) if self.order is None else self.rows.array()[self.order[begin:end]]
        assert self.type.unpack is not None
        return self.type.unpack(rows.reshape(-1, self.type.nbytes))

    def pack(self, layout: PackedLayout, begin: int, end: int, packed: np.ndarray) -> None:
        """Without bringing neighbours into one byte in between, of what becomes whole panels of dot groups."""
        whole = begin + (end - begin) // layout.blocks.unit * layout.blocks.unit
        bits, count = self.type.bits, whole - begin
        if self.name == "quantized" and isinstance(layout, CodeCells) and count and bits < BYTE_BITS:
            unpacked, panels = self._unpacked(begin, whole), count // layout.panel
            if unpacked.nibbles is None:
                pack_planes(_unsigned(unpacked, self.type, count), bits, packed[:panels])
            else:
                pack_split_nibbles(unpacked.nibbles.reshape(count, -1, unpacked.nibbles.shape[-1]), packed[:panels])
            begin, packed = whole, packed[panels:]
        if begin < end:
            super().pack(layout, begin, end, packed)

    def separable(self, axis: int) -> bool:
        return axis == 0


def _packed(unpacked: Unpacked, type_: BlockType, rows: int) -> np.ndarray:
    """Integers of some rows plus the offset, as unsigned ones packed into bytes."""
    if unpacked.nibbles is not None:
        return unpacked.pairs().reshape(rows, -1)
    return pack_sub_bytes(_unsigned(unpacked, type_, rows), type_.bits)


def _unsigned(unpacked: Unpacked, type_: BlockType, rows: int) -> np.ndarray:
    """Integers of some rows plus the offset, in bytes."""
    integers = np.ascontiguousarray(unpacked.integers()).view(np.uint8).reshape(rows, -1)
    return integers + np.uint8(type_.offset) if type_.offset else integers


PARAMETERS = ("scales", "minima", "scale_factors", "minimum_factors")
"""The parts of blocks beside their integers, by the names of operands of products."""


def example_of(type_: BlockType) -> Unpacked:
    """An unpacked block of zeros, which shows the types of its parts."""
    assert type_.unpack is not None
    return type_.unpack(np.zeros((1, type_.nbytes), np.uint8))


def matrix_rows(tensor: GgufTensor) -> np.ndarray:
    """The bytes of a tensor's rows as a matrix."""
    return tensor.raw.reshape(math.prod(tensor.shape[:-1]), -1)

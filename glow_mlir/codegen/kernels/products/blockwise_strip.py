"""
The micro-kernel of products of rows and weights that are both quantized by blocks, in tile registers: a strip of rows.

Weights are unpacked to bytes in front of it, once for all strips. A block is multiplied while the sums of the block
before are scaled. Integers are exact, and scaled in the order of other micro-kernels: results have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.amx import (
    MAX_ROWS,
    ROW_BYTES,
    TileSize,
    load_tile,
    multiply_tiles,
    store_tile,
    zero_tile,
)
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.shared_function import SharedFunction
from glow_mlir.codegen.builder.types import i8, i32, index_type, ptr, vector
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.kernels.products.blockwise_integer_tile import BlockwiseIntegerEmission, BlockwiseIntegerTile
from glow_mlir.codegen.kernels.products.packed_values import BYTE_BITS, PackedValues
from glow_mlir.codegen.kernels.products.tile_store import TileStore, row_addresses
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BYTES
from glow_mlir.support.dataclass import dataclass

INSTRUCTION = "tdpbssd"
"""The instruction for weights as signed bytes, less half of their range."""

UNSIGNED = "tdpbsud"
"""The instruction for weights as unsigned bytes."""

COLUMNS = ROW_BYTES // 4
"""Columns of a tile of sums."""

_SUMS, _LEFT, _RIGHT = (0, 1), (2, 3), 4
"""The registers of sums and rows, of each plane, and of weights."""

_LEFT_REST, _RIGHT_REST = (5, 6), 7
"""The registers of rows and weights for what is left of a block."""


@dataclass(frozen=True)
class UnpackedPanel(SharedFunction):
    """
    The function that unpacks a panel of weights, in vectors of `lanes` columns, to bytes, which are signed, entries of
    tables or less half of their range, unless `unsigned`: `[dot groups, panel, 4]`.
    """

    values: PackedValues
    panel: int
    lanes: int
    unsigned: bool = False

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        return [("packed", ptr), ("unpacked", ptr), ("units", index_type)]

    @property
    def readable(self) -> str:
        return f"unpack.{'u' if self.unsigned else 'i'}{self.values.bits}{'.table' if self.values.table else ''}"

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        values, align = self.values, DOT_GROUP_BYTES * self.lanes
        with b.loop(0, given["units"]) as number:
            for first in range(0, self.panel, self.lanes):
                packed = given["packed"].at(number * (values.words * self.panel) + first, i32)
                words = values.unsigned(values.loaded(b, packed, self.lanes, self.panel))
                for quad in range(values.quads):
                    found = b.bitcast(values.looked_up(b, values.quad(b, words, quad), signed=True), i8)
                    found = found if self.unsigned or values.table else found - (1 << values.bits - 1)
                    place = (number * values.quads + quad) * self.panel + first
                    given["unpacked"].at(place, i32).store(found, align=align)


@dataclass(frozen=True)
class BlockwiseStrip(BlockwiseIntegerTile):
    """A variant of the micro-kernel: `MAX_ROWS` rows, one vector of columns, and weights in bytes."""

    @property
    def readable(self) -> str:
        return f"{super().readable}.tiles"

    @property
    def unsigned(self) -> bool:
        """Whether weights are unsigned bytes: where blocks have a 0 of their own, and weights are unpacked."""
        return self.bits < BYTE_BITS and (self.zero_points is not None or self.minima is not None)

    @property
    def step(self) -> int:
        """Values of a block that are multiplied at a time."""
        return min(self.block, ROW_BYTES)

    def sizes(self) -> Sequence[TileSize]:
        """The sizes of the registers."""
        rest = self.rest % self.step or self.step
        steps = [*[self.step] * len(_LEFT), rest, rest]
        sums, rows = TileSize(MAX_ROWS, ROW_BYTES), [TileSize(MAX_ROWS, step) for step in steps]
        weights = [TileSize(step // DOT_GROUP_BYTES, ROW_BYTES) for step in (self.step, rest)]
        return [sums, sums, *rows[:2], weights[0], *rows[2:], weights[1]]

    def emit(self, b: Builder, given: dict[str, Value]) -> None:
        rows = {name: row_addresses(b, self, given, name, element) for name, element in self.row_operands.items()}
        _Emission(b, self, given, rows).run()


@dataclass(frozen=True)
class _Emission(BlockwiseIntegerEmission):
    """Multiplies a strip of rows."""

    kernel: BlockwiseStrip

    def run(self) -> None:
        b, kernel, given = self.b, self.kernel, self.given
        masks, blocks = self._masks(), given["blocks"]
        state = self._start(masks)
        with b.when(blocks > 0):
            self._multiply(b.index(0), kernel.block)
        with b.loop(0, blocks, carried=state) as loop:
            self._store()
            self._multiply(b.min(loop.index + 1, blocks - 1), kernel.block)
            loop.set(*self._scaled(loop.index, loop.values))
        state = loop.results
        if kernel.rest:
            self._multiply(blocks, kernel.rest)
            self._store()
            state = self._scaled(blocks, state)
        TileStore(b, kernel, given, masks).run(state)

    @cached_property
    def _buffers(self) -> list[Value]:
        """Memory for the sums of each plane."""
        return [self.b.stack(i32, MAX_ROWS * COLUMNS) for _ in self.kernel.planes]

    def _multiply(self, number: Value, size: int) -> None:
        """Multiply a block of `size` values."""
        kernel, first = self.kernel, number * self.kernel.block
        for plane in range(len(kernel.planes)):
            zero_tile(self.b, _SUMS[plane])
        whole, rest = divmod(size, kernel.step)
        if whole > 1:
            with self.b.loop(0, whole) as index:
                self._add_products(first + index * kernel.step, _LEFT, _RIGHT)
        elif whole:
            self._add_products(first, _LEFT, _RIGHT)
        if rest:
            self._add_products(first + whole * kernel.step, _LEFT_REST, _RIGHT_REST)

    def _add_products(self, start: Index, left: Sequence[int], right: int) -> None:
        """Add the products of some values from a first one on, by the registers of rows and weights."""
        b, kernel = self.b, self.kernel
        groups = start // DOT_GROUP_BYTES
        pitch = kernel.tile.panel * DOT_GROUP_BYTES
        load_tile(b, right, self.given["packed"].at(groups * kernel.tile.panel, i32), pitch)
        for plane, name in enumerate(kernel.planes):
            load_tile(b, left[plane], self.rows[name][0].at(start, i8), self.given[f"{name}_step"])
            multiply_tiles(b, UNSIGNED if kernel.unsigned else INSTRUCTION, _SUMS[plane], left[plane], right)

    def _store(self) -> None:
        """Write the sums to memory."""
        for plane, buffer in enumerate(self._buffers):
            store_tile(self.b, _SUMS[plane], buffer, ROW_BYTES)

    def _scaled(self, number: Value, totals: Sequence[Value]) -> list[Value]:
        """Add the scaled sums of a block, which are in memory, to the totals."""
        kernel, type_ = self.kernel, vector(i32, COLUMNS)
        loaded = [
            buffer.at(row * COLUMNS, i32).load(type_, align=ROW_BYTES)
            for buffer in self._buffers
            for row in range(kernel.rows)
        ]
        sums = self.sums(number)
        if (kernel.zero_points is not None or kernel.minima is not None) and not kernel.unsigned:
            half = 1 << kernel.bits - 1
            loaded[: kernel.rows] = [
                found + self.b.splat(total * half, COLUMNS)
                for found, total in zip(loaded[: kernel.rows], sums, strict=True)
            ]
        return self.scaled(number, loaded, sums, totals)

"""
The tile registers of AMX: eight matrices of up to 16 rows of 64 bytes, and products of them.

Registers are named by number, so that accumulators stay in them across calls of functions that do not use them. A
configuration sets their rows and bytes for all code that follows.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i8, i64
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.support.dataclass import dataclass

MAX_ROWS = 16
"""The maximum number of rows of a register."""

ROW_BYTES = 64
"""The maximum number of bytes of a row."""

_PALETTE, _BYTES_FROM, _ROWS_FROM = 1, 16, 48
"""The first byte of a configuration, and the offsets of the bytes per row (u16) and of the rows (u8)."""


@dataclass(frozen=True)
class TileSize:
    """The size of a register: rows, and bytes of each row."""

    rows: int
    bytes: int


def configuration(sizes: Sequence[TileSize]) -> np.ndarray:
    """The 64-byte configuration of registers with these sizes, from the first one on."""
    found = np.zeros(64, np.uint8)
    found[0] = _PALETTE
    for tile, size in enumerate(sizes):
        found[_BYTES_FROM + 2 * tile] = size.bytes
        found[_ROWS_FROM + tile] = size.rows
    return found


@contextmanager
def configured(b: Builder, sizes: Sequence[TileSize]) -> Generator[None]:
    """A context for code whose registers have these sizes."""
    b.perform_intrinsic("llvm.x86.ldtilecfg", (b.symbol(b.module.table(configuration(sizes))),))
    yield
    b.perform_intrinsic("llvm.x86.tilerelease", ())


def zero_tile(b: Builder, tile: int) -> None:
    """Fill a register with zeros."""
    b.perform_intrinsic("llvm.x86.tilezero", (b.constant(tile, i8),))


def load_tile(b: Builder, tile: int, address: Value, step: Index) -> None:
    """Fill a register with rows from an address on, `step` bytes apart."""
    b.perform_intrinsic("llvm.x86.tileloadd64", (b.constant(tile, i8), address, b.as_value(step, i64)))


def store_tile(b: Builder, tile: int, address: Value, step: Index) -> None:
    """Write the rows of a register from an address on, `step` bytes apart."""
    b.perform_intrinsic("llvm.x86.tilestored64", (b.constant(tile, i8), address, b.as_value(step, i64)))


def multiply_tiles(b: Builder, name: str, total: int, left: int, right: int) -> None:
    """Add to a register the product of two others, by the instruction of that name."""
    b.perform_intrinsic(f"llvm.x86.{name}", [b.constant(tile, i8) for tile in (total, left, right)])

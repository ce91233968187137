"""
The tile registers of AMX: eight matrices of up to 16 rows of 64 bytes, and products of them.

Registers are named by number, so that sums stay where they are over calls of functions that leave them alone. Which
rows and bytes they have is said once for all code that follows, by their configuration.
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
"""How many rows a register has at most."""

ROW_BYTES = 64
"""How many bytes a row of a register has at most."""

_PALETTE, _BYTES_FROM, _ROWS_FROM = 1, 16, 48
"""The first byte of a configuration, and where it has the bytes of each row as u16, and the rows as u8."""


@dataclass(frozen=True)
class TileSize:
    """What a register holds: rows, and bytes of each."""

    rows: int
    bytes: int


def configuration(sizes: Sequence[TileSize]) -> np.ndarray:
    """The 64 bytes that say what each register holds, from the first one on."""
    found = np.zeros(64, np.uint8)
    found[0] = _PALETTE
    for tile, size in enumerate(sizes):
        found[_BYTES_FROM + 2 * tile] = size.bytes
        found[_ROWS_FROM + tile] = size.rows
    return found


@contextmanager
def configured(b: Builder, sizes: Sequence[TileSize]) -> Generator[None]:
    """Code whose registers hold what `sizes` say."""
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

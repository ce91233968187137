"""Tiles of the matrix kernels: how many rows and vectors a target keeps in registers, and how rows are split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from glow_mlir.dialects.target import Target


@dataclass(frozen=True)
class Tile:
    """
    A block of the output kept in registers: `rows` by `vectors` vectors of `lanes` elements.

    The columns of one tile are a panel of packed weights.
    """

    rows: int
    vectors: int
    lanes: int

    @property
    def panel(self) -> int:
        """How many columns a tile has."""
        return self.vectors * self.lanes


SHAPES = {(256, 16): (6, 2), (512, 32): (6, 4), (128, 32): (8, 3), (128, 16): (6, 2)}
"""
Rows and vectors by width and number of vector registers. All but a few registers accumulate; the rest hold one
row of the panel and one spread element. Measured on Zen 4 (AVX2 6x2; AVX-512 among 6x4, 8x3, 12x2, 14x2).
"""

SCALAR_SHAPE = (2, 4)


def tile_for(target: Target, element: Attribute) -> Tile:
    """Return the tile for a target and an element type."""
    rows, vectors = SHAPES.get((target.vector_bits, target.vector_registers), SCALAR_SHAPE)
    return Tile(rows, vectors, target.vector_width(element))


def balanced(extent: int, most: int) -> Sequence[tuple[int, int]]:
    """
    Return how to cut an extent into pieces of at most `most`, as (how many pieces, size), larger pieces first.

    Sizes differ by at most one: a short rest would leave the arithmetic units idle.
    """
    if not extent:
        return []
    count = -(-extent // most)
    size, longer = divmod(extent, count)
    return [(pieces, length) for pieces, length in ((longer, size + 1), (count - longer, size)) if pieces]


def distinct(candidates: Iterable[dict[str, int]]) -> list[dict[str, int]]:
    """Each of the candidates once, in their order."""
    return [dict(items) for items in dict.fromkeys(tuple(candidate.items()) for candidate in candidates)]

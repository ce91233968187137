"""Tiles of the matrix kernels: the rows and vectors that a target keeps in registers, and how rows are divided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import cast

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.types import type_info
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.dialects.element_types import bit_width, is_integer
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Tile:
    """
    A block of the output in registers: `rows` by `vectors` vectors of `lanes` elements.

    The columns of one tile are a panel of packed weights. `accumulators` independent vectors of accumulators, or a tile
    with `min_rows`, are needed to keep the multiply-add units busy.
    """

    rows: int
    vectors: int
    lanes: int
    accumulators: int
    min_rows: int

    @property
    def panel(self) -> int:
        """The number of columns of a tile."""
        return self.vectors * self.lanes


@dataclass(frozen=True)
class Columns:
    """Columns of the output: those of a panel, the last of which may be partial."""

    start: Index
    weights: Value
    vectors: int
    partial: bool
    count: Index


@cache
def tile_for(target: Target, element: Attribute, lanes: int | None = None) -> Tile:
    """
    Return the tile for a target and an element type, in vectors of `lanes` accumulators, by default whole vectors.

    Most registers are accumulators; the others hold one row of the panel and one broadcast element.
    """
    costs, lanes = kernel_costs(target), lanes or target.vector_width(element)
    if lanes == 1 and is_integer(element):
        return Tile(
            costs.core_tile_rows, costs.core_tile_accumulators, lanes, costs.independent_accumulators, costs.fewest_rows
        )
    vectors = costs.tile_vectors
    fitting = (target.vector_registers - 1) // vectors - 1
    rows = max(1, min(costs.tile_rows, fitting))
    return Tile(rows, vectors, lanes, costs.independent_accumulators, costs.fewest_rows)


def line_elements(target: Target, element: Attribute) -> int:
    """Return the number of elements, or of vectors, in a cache line."""
    if isinstance(element, VectorType):
        info = type_info(cast("VectorType[Attribute]", element))
        return target.line_bytes // (info.lanes * info.bytes_in_memory)
    return target.line_bytes * 8 // bit_width(element)


def balanced(extent: int, limit: int) -> Sequence[tuple[int, int]]:
    """
    Divide an extent into pieces of at most `limit`; return (number of pieces, size), larger pieces first.

    Sizes differ by at most one: a short remainder would leave arithmetic units idle.
    """
    if not extent:
        return []
    count = -(-extent // limit)
    size, longer = divmod(extent, count)
    return [(pieces, length) for pieces, length in ((longer, size + 1), (count - longer, size)) if pieces]


def distinct(candidates: Iterable[dict[str, int]]) -> list[dict[str, int]]:
    """Return the candidates without duplicates, in order."""
    return [dict(items) for items in dict.fromkeys(tuple(candidate.items()) for candidate in candidates)]

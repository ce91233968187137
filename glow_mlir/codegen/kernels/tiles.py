"""Tiles of the matrix kernels: how many rows and vectors a target keeps in registers, and how rows are split."""

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
    A block of the output kept in registers: `rows` by `vectors` vectors of `lanes` elements.

    The columns of one tile are a panel of packed weights. It takes `accumulators` vectors of independent accumulators,
    and a tile of
    `fewest_rows`, to keep the multiply-add units busy.
    """

    rows: int
    vectors: int
    lanes: int
    accumulators: int
    fewest_rows: int

    @property
    def panel(self) -> int:
        """How many columns a tile has."""
        return self.vectors * self.lanes


@dataclass(frozen=True)
class Columns:
    """Some columns of the output: a panel, or what is left for the last one."""

    start: Index
    weights: Value
    vectors: int
    partial: bool
    count: Index


@cache
def tile_for(target: Target, element: Attribute, lanes: int | None = None) -> Tile:
    """
    Return the tile for a target and an element type, in vectors of `lanes` accumulators, by default as many as fit one.

    All but a few registers accumulate; the rest hold one row of the panel and one spread element.
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
    """How many elements, or vectors of them, a line of the cache has."""
    if isinstance(element, VectorType):
        info = type_info(cast("VectorType[Attribute]", element))
        return target.line_bytes // (info.lanes * info.bytes_in_memory)
    return target.line_bytes * 8 // bit_width(element)


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

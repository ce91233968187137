"""Products of tile registers: which a machine has, how the depth of a product is cut for them, and when they pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i8

from glow_mlir.codegen.builder.amx import ROW_BYTES, TileSize
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.dot_products import CellProduct, DotProduct
from glow_mlir.codegen.kernels.gemm import TILE_PRODUCTS
from glow_mlir.codegen.kernels.tiles import tile_for
from glow_mlir.dialects.element_types import byte_width, is_unsigned
from glow_mlir.dialects.target import Target

TILE_COLUMNS = ROW_BYTES // 4
"""Columns of a tile of sums, which are of 32 bits."""

CELL_BYTES = 4
"""Bytes of a cell: so much of each column lies together, in panels and in registers."""


@dataclass(frozen=True)
class TileProduct:
    """
    An instruction that adds the product of two tile registers to a third, for panels of `dot`.

    It takes `step` neighbours along the depth at once, of which a contiguous run of it has a whole number: as many as
    a register holds, or fewer, so that nothing is left over.
    """

    instruction: str
    dot: DotProduct
    step: int
    panel: int
    """Columns of a panel."""

    @property
    def cells(self) -> int:
        """How many rows of a panel one product takes."""
        return self.step // self.dot.group

    def sizes(self, rows: int) -> Sequence[TileSize]:
        """What the registers hold for strips of so many rows: four of sums, two of left elements, two of right ones."""
        left = TileSize(rows, self.step * byte_width(self.dot.left))
        return [TileSize(rows, ROW_BYTES)] * 4 + [left] * 2 + [TileSize(self.cells, ROW_BYTES)] * 2


_BYTES: Mapping[bool, str] = {False: "tdpbssd", True: "tdpbusd"}
"""Whether the left bytes are unsigned → the instruction that multiplies them with signed ones."""


def tile_product(dot: DotProduct, run: int, target: Target) -> TileProduct | None:
    """
    How a machine multiplies tiles, where the depth is made of contiguous runs of that length.

    `None` where it cannot, or where the form of its panels does not suit tiles.
    """
    if not isinstance(dot, CellProduct) or dot.instruction.element != i8:
        return None
    if not {"amx-int8", "amx-tile"} <= target.enabled:
        return None
    panel = tile_for(target, dot.sums).panel
    if panel % TILE_COLUMNS or not run or run % dot.group:
        return None
    cells = run // dot.group
    most = ROW_BYTES // CELL_BYTES
    steps = next(count for count in range(-(-cells // most), cells + 1) if cells % count == 0)
    return TileProduct(_BYTES[is_unsigned(dot.left)], dot, run // steps, panel)


def with_tile_products(
    found: Sequence[dict[str, int]],
    product: TileProduct,
    strips: int,
    rows: int,
    columns: int,
    depth: int,
    target: Target,
) -> Sequence[dict[str, int]]:
    """The candidates of a product of these sizes, also by tile registers: in front where these are the faster."""
    by_tiles = [{**tiles, TILE_PRODUCTS: 1} for tiles in found]
    if _pays(product, strips, rows, columns, depth, target):
        return [*by_tiles, *found]
    return [*found, *by_tiles]


def _pays(product: TileProduct, strips: int, rows: int, columns: int, depth: int, target: Target) -> bool:
    """Whether the tiles of a product of these sizes take fewer cycles than its dot products in vectors."""
    costs, dot = kernel_costs(target), product.dot
    tiles = strips * -(-columns // TILE_COLUMNS)
    steps = depth // product.step
    cycles = tiles * (steps * costs.tile_product_cycles + costs.tile_sums_cycles) + costs.tile_configuration_cycles
    vectors = rows * -(-columns // target.vector_width(dot.sums))
    return cycles * costs.dot_products_per_cycle < vectors * -(-depth // dot.group)

"""Products of tile registers: which a target has, how the depth is divided for them, and when they pay."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import bf16, i8
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.amx import MAX_ROWS, ROW_BYTES, TileSize
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import DotGroupProduct, DotProduct
from glow_mlir.codegen.kernels.products.gemm import TILE_PRODUCTS
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BYTES
from glow_mlir.dialects.element_types import byte_width, is_float, ui8
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

TILE_COLUMNS = ROW_BYTES // 4
"""Columns of a tile of 32-bit accumulators."""


@dataclass(frozen=True)
class TileProduct:
    """
    An instruction that adds the product of two tile registers to a third, for panels of `dot`.

    It takes `step` neighbours along the depth at once, as many as a register holds, or fewer, so that they divide a
    contiguous run of the depth.
    """

    instruction: str
    dot: DotProduct
    step: int
    panel: int
    """The number of columns of a panel."""

    @property
    def dot_groups(self) -> int:
        """The rows of a panel per product."""
        return self.step // self.dot.group

    def sizes(self, rows: int) -> Sequence[TileSize]:
        """
        Return the sizes of the registers for strips of `rows` rows: four of accumulators, two of left elements, two of
        right elements.
        """
        left = TileSize(rows, self.step * byte_width(self.dot.left))
        return [TileSize(rows, ROW_BYTES)] * 4 + [left] * 2 + [TileSize(self.dot_groups, ROW_BYTES)] * 2


@dataclass(frozen=True)
class TileInstruction:
    """An instruction for products of elements of two types, which needs a feature in addition to `amx-tile`."""

    name: str
    feature: str
    left: Attribute
    right: Attribute

    def is_available(self, target: Target) -> bool:
        """Whether a target has it."""
        return {self.feature, "amx-tile"} <= target.enabled

    def multiplies(self, dot: DotProduct) -> bool:
        """Whether it can read the panels of a product."""
        return isinstance(dot, DotGroupProduct) and (dot.left, dot.right) == (self.left, self.right)


TILE_INSTRUCTIONS: Sequence[TileInstruction] = (
    TileInstruction("tdpbusd", "amx-int8", ui8, i8),
    TileInstruction("tdpbssd", "amx-int8", i8, i8),
    TileInstruction("tdpbf16ps", "amx-bf16", bf16, bf16),
)
"""All tile instructions; an entry adds one."""


def tile_instruction(dot: DotProduct, target: Target) -> TileInstruction | None:
    """Return the instruction of a target that reads the panels of a product, or `None`."""
    return next((one for one in TILE_INSTRUCTIONS if one.multiplies(dot) and one.is_available(target)), None)


def tile_product(dot: DotProduct, run: int, target: Target) -> TileProduct | None:
    """
    Return how a target multiplies tiles, for a depth of contiguous runs of length `run`.

    It is `None` if the target has no instruction, or the form of its panels does not suit tiles; and for floats with
    strict accuracy, since tiles add in another order, and are only used for enough rows.
    """
    instruction, panel = tile_instruction(dot, target), dot.tile(target).panel
    if target.is_strict and is_float(dot.accumulators):
        return None
    if instruction is None or panel % TILE_COLUMNS or not run or run % dot.group:
        return None
    dot_groups = run // dot.group
    max_dot_groups = ROW_BYTES // DOT_GROUP_BYTES
    steps = next(count for count in range(-(-dot_groups // max_dot_groups), dot_groups + 1) if dot_groups % count == 0)
    return TileProduct(instruction.name, dot, run // steps, panel)


def tile_products_per_vector_product(product: TileProduct, target: Target) -> int:
    """Return the number of products that tiles add in the time in which vectors add one f32 product."""
    costs = kernel_costs(target)
    by_tiles = MAX_ROWS * TILE_COLUMNS * product.step // costs.tile_product_cycles
    return max(1, by_tiles // (target.vector_width(product.dot.accumulators) * costs.dot_products_per_cycle))


def with_tile_products(
    found: Sequence[dict[str, int]],
    product: TileProduct,
    strips: int,
    rows: int,
    columns: int,
    depth: int,
    target: Target,
) -> Sequence[dict[str, int]]:
    """Return the candidates of a product, without and with tile registers, the faster ones first."""
    by_tiles = [{**tiles, TILE_PRODUCTS: 1} for tiles in found]
    if _pays(product, strips, rows, columns, depth, target):
        return [*by_tiles, *found]
    return [*found, *by_tiles]


def _pays(product: TileProduct, strips: int, rows: int, columns: int, depth: int, target: Target) -> bool:
    """Whether a product of these sizes takes fewer cycles in tiles than with dot products of vectors."""
    costs, dot = kernel_costs(target), product.dot
    tiles = strips * -(-columns // TILE_COLUMNS)
    steps = depth // product.step
    cycles = (
        tiles * (steps * costs.tile_product_cycles + costs.tile_accumulator_cycles) + costs.tile_configuration_cycles
    )
    vectors = rows * -(-columns // target.vector_width(dot.accumulators))
    return cycles * costs.dot_products_per_cycle < vectors * -(-depth // dot.group)

"""What was measured of a processor, as far as kernels ask for it."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import ClassVar

from glow_mlir.backends.interface import costs_of
from glow_mlir.dialects.costs import Costs
from glow_mlir.dialects.target import Target
from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class KernelCosts(Costs):
    """What passes ask for, and the sizes that kernels choose; products are multiply-adds."""

    POWERS: ClassVar[Collection[str]] = (
        *("independent_vectors", "independent_accumulators", "prologue_vectors"),
        *("square_rows", "square_bytes"),
    )

    # Work that hides latencies.
    independent_vectors: int
    """Vectors that a loop computes side by side where their operations wait for each other."""
    independent_accumulators: int
    """Vectors of sums that keep the multiply-add units busy."""
    prologue_vectors: int
    """Vectors that a prologue is applied to at once."""
    light_operations: int
    """Work of a body, in additions, up to which it is repeated for each vector of a tile; else it is a loop."""

    quotient_vectors: int
    """Vectors whose quotients by a number are corrected, and looked at, together; 1 where a division is faster."""
    branched_operations: int
    """Operations on scalars that it is worth to branch around, where they are hardly ever needed."""

    # Matrix products.
    tile_rows: int
    """Rows of a tile of products, where there are registers for them."""
    tile_vectors: int
    """Vectors of a row of such a tile."""
    core_tile_rows: int
    """Rows of a tile whose sums are integers in registers of the core, where there are none for vectors of them."""
    core_tile_accumulators: int
    """Sums of a row of such a tile."""
    called_tiles: int
    """Tiles of rows that one call of their function computes; more than 1 are all that follow each other."""
    widened_groups: int
    """
    Dot groups of a panel up to which its bytes are made words once for all those tiles, on the stack: 8 bytes each.
    """
    widened_tiles: int
    """Tiles from which on that pays."""
    unrolled_groups: int
    """
    Dot groups of the depth that a step of a tile takes at least, where what a loop does beside them takes its time.
    """
    sized_depth: int
    """Products of a sum up to which a tile has code for its sizes, where it computes one vector, or sum, at a time."""
    fewest_rows: int
    """Rows with which a tile does not wait for the latency of its sums."""
    block_rows: int
    """Rows that one pass over all panels works on, where the left operand is too large to stay in the cache."""
    prefetched_rows: int
    """Rows up to which the next panel is fetched ahead; with more, each fetch would bring too little."""
    fetched_bytes: int
    """How far ahead of codes that are read once, from memory, they are fetched."""
    part_tiles: int
    """Tiles of rows of a part of a product: so many as to make up for reading all columns."""
    uneven_percent: int
    """By how much longer than the mean the share of one thread may take."""
    unpacked_queries: int
    """Queries up to which attention does not pack keys and values."""
    plane_channels: int
    """Channels up to which an image is read plane by plane; of more, a transpose costs less than the short runs."""

    # Matrix products by tile registers, in cycles.
    dot_products_per_cycle: int
    """Instructions that add products to a vector of sums, and can start in one cycle."""
    tile_product_cycles: int
    """The product of two tile registers."""
    tile_accumulator_cycles: int
    """What the sums of a register take from there to the vectors of an epilogue."""
    tile_configuration_cycles: int
    """The configuration of the registers for an instruction, and their release."""

    # Depthwise convolutions: a tile is some pixels of some lines.
    depthwise_lines: int
    """Lines of a tile, which share what they read."""
    depthwise_pixels: int
    """Pixels of a line of the tile; the other registers hold lines of the filter, and one pixel."""
    core_depthwise_lines: int
    """Lines of a tile at most, where its sums are integers in registers of the core."""
    core_depthwise_pixels: int
    """Pixels of a line of such a tile at most."""

    # Pools.
    unrolled_taps: int
    """Scalars of a window up to which there is code for each; more than one where comparing floats is slow."""
    unrolled_summands: int
    """Codes of a window up to which there is code for each."""

    # Winograd's and Strassen's algorithms.
    winograd_tiles: int
    """Tiles of a block: as many as let the weights be read seldom, and few enough that their inputs stay near."""
    winograd_fewest_tiles: int
    """Tiles of a block that reads the weights often enough to make up for it."""
    winograd_products: int
    """Products that the transforms are worth, for each channel, and for each filter, at each point of a tile."""
    winograd_read_products: int
    """Products that it is worth to read one element of the filters from memory."""
    winograd_fetched_products: int
    """The same where it is fetched ahead, which takes several tiles of rows."""
    winograd_packed_products: int
    """Products that it is worth to transform filters at run time, for each weight."""
    strassen_products: int
    """Products that the sums are worth, for each element of the left operand, and for each of the result."""
    strassen_read_products: int
    """Products that it is worth to read one element of the right operand."""

    # Recurrences.
    row_sums: int
    """Vectors of sums that the product of one row has at least, where there are as many."""
    recurrent_block_percent: int
    """What a block of hidden units costs beside its products, in hundredths of a vector of its panel."""

    # Decision trees.
    rows_together: int
    """Rows that go down a tree at the same time."""
    rows_a_tree: int
    """Rows that go down a tree before they go down the next one: their features take less of the caches than a tree."""
    trees_together: int
    """Binned trees that a row goes down at the same time, and whose weights are added up before they join the sums."""
    single_rows: int
    """Rows that go down binned trees one by one, since a block of them takes longer."""
    near_leaf_bytes: int
    """Bytes of leaves that a cache nearby has room for, beside the tests."""

    # Data movement.
    square_rows: int
    """Rows of the squares that are transposed in registers."""
    square_bytes: int
    """Bytes that a row of such a square has at least."""
    repeated_elements: int
    """How often an element may come in a row for vectors of the source to be spread over the target."""
    part_elements: int
    """Elements of a copy or fill that are worth a step of what is cut into parts."""
    few_sets: int
    """Sets of the cache that hold the lines of a transposition's source when these get in each other's way."""
    shared_lines: int
    """Lines of a strip of a transposition that may share a set of the cache."""
    near_block: int
    """Elements of the longest block of a transposition whose target has several lines a page."""
    far_block: int
    """The same for other targets, and for what exceeds all caches."""
    spread_block: int
    """The same for sources in many sets."""


@cache
def kernel_costs(target: Target) -> KernelCosts:
    """
    What was measured of a machine that kernels are emitted for, unless its target says otherwise.

    Raises `OptionError` for a backend that has kernels, but measured something else.
    """
    costs = costs_of(target)
    if not isinstance(costs, KernelCosts):
        hint = "`measured` gives KernelCosts, such as those of the backend 'cpu'"
        raise OptionError(f"the backend '{target.backend}' has measured nothing that kernels ask for", hint=hint)
    return costs

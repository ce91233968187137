"""Measured properties of a processor that kernels use."""

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
    """The costs that passes use, and the sizes that kernels choose; a product is a multiply-add."""

    POWERS: ClassVar[Collection[str]] = (
        *("independent_vectors", "independent_accumulators", "prologue_vectors"),
        *("square_rows", "square_bytes"),
    )

    # Work that hides latencies.
    independent_vectors: int
    """Vectors that a loop computes together if their operations depend on each other."""
    independent_accumulators: int
    """Vectors of accumulators that keep the multiply-add units busy."""
    prologue_vectors: int
    """Vectors to which a prologue is applied at once."""
    light_operations: int
    """The maximum work of a body, in additions, that is repeated for each vector of a tile; more is a loop."""

    quotient_vectors: int
    """Vectors whose quotients by a number are corrected and checked together; 1 where a division is faster."""
    branched_operations: int
    """Scalar operations from which on a branch around them pays off, if they are rarely needed."""

    # Matrix products.
    tile_rows: int
    """Rows of a tile of products, if there are registers for them."""
    tile_vectors: int
    """Vectors in a row of such a tile."""
    core_tile_rows: int
    """Rows of a tile whose accumulators are integers in core registers, on processors without vectors of them."""
    core_tile_accumulators: int
    """Accumulators in a row of such a tile."""
    called_tiles: int
    """Row tiles that one call of their function computes; any number above 1 means all consecutive tiles."""
    widened_groups: int
    """
    The maximum number of dot groups of a panel whose bytes are widened to words once for all those tiles, on the stack:
    8 bytes each.
    """
    widened_tiles: int
    """The number of tiles from which on that pays off."""
    unrolled_groups: int
    """The minimum number of dot groups of the depth in a step of a tile, where the overhead of a loop takes time."""
    long_run: int
    """The number of dot groups in a run of the depth from which on a step of a tile takes two of them."""
    sized_depth: int
    """
    The maximum number of products in a sum for which a tile has code for its sizes, if it computes one vector, or
    accumulator, at a time.
    """
    fewest_rows: int
    """Rows with which a tile does not wait for the latency of its accumulators."""
    block_rows: int
    """Rows that one pass over all panels handles, if the left operand is too large to stay in the cache."""
    prefetched_rows: int
    """
    The maximum number of rows for which the next panel is prefetched; with more, a prefetch would gain too little.
    """
    fetched_rows: int
    """
    How many rows ahead a tile of `fewest_rows` fetches a whole panel that is larger than the nearest cache; 1 where the
    cache does so itself.
    """
    fetched_bytes: int
    """How far ahead quantized values that are read once, from memory, are prefetched, in bytes."""
    blockwise_rows: int
    """The maximum number of rows of a tile of products of integers that are quantized in blocks."""
    blockwise_vectors: int
    """The maximum number of vectors of such a tile."""
    blockwise_strips: int
    """The minimum number of strips of rows for which tile registers multiply such integers."""
    blockwise_strips_together: int
    """The number of strips that are multiplied by a panel, unpacked once, before the next panel."""
    blockwise_groups: int
    """The maximum number of dot groups of a block whose products are not a loop."""
    streamed_rows: int
    """The maximum number of rows that are multiplied by a matrix in place; with more, packing it pays off."""
    streamed_dot_group_rows: int
    """The same for bytes whose dot groups are interleaved in registers."""
    streamed_widened_rows: int
    """The same for bytes that are multiplied one at a time, although packed ones have dot groups."""
    streamed_sums: int
    """Sums that stay in a nearby cache while rows of such a matrix pass by, and elements of its pieces there."""
    part_tiles: int
    """Row tiles in a part of a product: enough to make up for reading all columns."""
    uneven_percent: int
    """By how many percent the slice of one thread may take longer than the mean."""
    unpacked_queries: int
    """The maximum number of queries for which attention does not pack keys and values."""
    paged_queries: int
    """Queries of neighbouring tokens and heads that share what attention to pages loads, if there are as many."""

    # Matrix products by tile registers, in cycles.
    dot_products_per_cycle: int
    """Instructions that add products to a vector of accumulators, and can start in one cycle."""
    tile_product_cycles: int
    """The product of two tile registers."""
    tile_accumulator_cycles: int
    """The transfer of a register's accumulators to the vectors of an epilogue."""
    tile_configuration_cycles: int
    """The configuration of the registers for an instruction, and their release."""

    # Depthwise convolutions: a tile is some pixels of some lines.
    depthwise_lines: int
    """Lines of a tile, which share their loads."""
    depthwise_pixels: int
    """Pixels of a line of the tile; the other registers hold lines of the filter, and one pixel."""
    depthwise_elements: int
    """The largest number of elements of a depthwise filter for which there is code for each; others have loops."""
    depthwise_columns: int
    """The columns of such a filter for which there is code for each, where it has lines of more than that number."""
    depthwise_dot_lanes: int
    """The minimum number of lanes of vectors for which depthwise convolutions of bytes add dot groups."""
    core_depthwise_lines: int
    """The maximum number of lines of a tile whose accumulators are integers in core registers."""
    core_depthwise_pixels: int
    """The maximum number of pixels in a line of such a tile."""

    # Pools.
    unrolled_taps: int
    """The maximum number of scalars in a window that is unrolled; more than one where comparing floats is slow."""
    unrolled_summands: int
    """The maximum number of quantized values in a window that is unrolled."""

    # Winograd's and Strassen's algorithms.
    winograd_tiles: int
    """Tiles of a block: enough to read the weights rarely, and few enough for their inputs to stay in the cache."""
    winograd_fewest_tiles: int
    """Tiles of a block that reads the weights often enough to make up for it."""
    winograd_products: int
    """The cost of the transforms in products, per channel and per filter, at each point of a tile."""
    winograd_read_products: int
    """The cost in products of reading one element of the filters from memory."""
    winograd_fetched_products: int
    """The same with prefetching, which takes several row tiles."""
    winograd_packed_products: int
    """The cost in products of transforming filters at run time, per weight."""
    strassen_products: int
    """The cost of the sums in products, per element of the left operand and per element of the result."""
    strassen_read_products: int
    """The cost in products of reading one element of the right operand."""

    # Recurrences.
    row_sums: int
    """The minimum number of vectors of accumulators in the product of one row, if there are that many."""
    recurrent_block_percent: int
    """The overhead of a block of hidden units, in hundredths of a vector of its panel."""

    # Decision trees.
    rows_together: int
    """Rows that descend a tree at the same time."""
    rows_a_tree: int
    """Rows that descend a tree before they descend the next one: their features take less of the caches than a tree."""
    trees_together: int
    """Binned trees that a row descends at the same time, and whose weights are added up before they join the sums."""
    single_rows: int
    """Rows that descend binned trees one by one, because a block of them takes longer."""
    near_leaf_bytes: int
    """Bytes of leaves that fit into a nearby cache together with the tests."""

    # Data movement.
    square_rows: int
    """Rows of the squares that are transposed in registers."""
    square_bytes: int
    """The minimum number of bytes in a row of such a square."""
    repeated_elements: int
    """The maximum number of repetitions of an element for which vectors of the source are spread over the target."""
    part_elements: int
    """Elements of a copy or fill that are worth one step of a partition."""
    few_sets: int
    """Cache sets that hold the lines of a transposition's source when these conflict."""
    shared_lines: int
    """Lines of a strip of a transposition that may share a cache set."""
    near_block: int
    """Elements of the longest block of a transposition whose target has several lines a page."""
    far_block: int
    """The same for other targets, and for transpositions that exceed all caches."""
    spread_block: int
    """The same for sources in many sets."""


@cache
def kernel_costs(target: Target) -> KernelCosts:
    """
    The measured costs of the machine for which kernels are emitted, unless its target overrides them.

    Raises `OptionError` for a backend that has kernels but other costs.
    """
    costs = costs_of(target)
    if not isinstance(costs, KernelCosts):
        hint = "`measured` has to return KernelCosts, as for the backend 'cpu'"
        raise OptionError(f"the backend '{target.backend}' has no costs for kernels", hint=hint)
    return costs

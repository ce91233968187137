"""Measured costs of processors, on x86-64 (Zen 4); the `costs` of a target override them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glow_mlir.codegen.costs import KernelCosts
from glow_mlir.dialects.target import Target

_MEASURED = KernelCosts(
    operations_per_byte=4,  # A core does 16 to 32 operations a cycle, a cache moves 4 to 8 bytes.
    function_operations=16,  # Polynomials.
    division_operations=4,
    integer_division_operations=16,
    limit_operations=1,
    part_operations=1 << 18,  # 2 to 3 µs, while starting and ending a parallel loop takes 1.
    parts_per_thread=4,
    max_parts_per_thread=16,
    least_tap_filters=32,
    least_tap_channels=16,
    most_taps=5,
    # AVX-512, 32 images of 32x32, 3x3 taps: 3 channels take 0.45 of the time, 16 take 0.5, 32 take 1.3.
    tap_product_channels=16,
    most_phases=16,
    most_uneven_phases=64,
    depth_codes=1,
    copied_code_operations=8,
    channel_lanes=16,
    pooled_pixels=8,  # AVX2: at 28 pixels, a pool of 2x2/2 takes 0.5 of the time.
    clipped_pooled_pixels=32,  # AVX2: one of 3x3 takes 0.85 at 56, 0.95 at 35, and 1.15 at 28.
    plane_channels=4,
    pooled_channels=64,
    # AVX-512, 16 planes of 64x64: windows of 3x3 take 0.5 of the time where they are split, sums as long as before.
    larger_operations=2,
    pool_operations=2,
    dequantizing_rows=17,  # AVX-512, 1024x1024 of int8: one row takes 0.29, 4 rows 0.47, 16 rows 1.0, 64 rows 1.26.
    shifting_rows=5,  # VNNI, 333x217: one row takes 0.3 in place, 6 rows 0.6 with a copy.
    independent_vectors=4,
    independent_accumulators=8,  # A multiply-add takes about four cycles, and two can start in each.
    prologue_vectors=2,
    light_operations=8,
    quotient_vectors=2,  # Sapphire Rapids: 1.0 to 1.3 of the time of a product, and a division 1.0 to 2.8.
    branched_operations=1 << 10,
    tile_rows=8,
    tile_vectors=2,
    core_tile_rows=2,
    core_tile_accumulators=4,
    called_tiles=1,
    widened_groups=1,
    widened_tiles=1,
    unrolled_groups=1,
    long_run=1 << 30,
    sized_depth=1,
    fewest_rows=4,
    block_rows=96,
    prefetched_rows=256,
    fetched_rows=1,
    fetched_bytes=4096,  # Zen 5: from DRAM 1.2 to 1.5 times as fast as without, and than with 1024.
    blockwise_rows=4,
    blockwise_vectors=2,
    blockwise_strips=2,
    blockwise_strips_together=8,
    blockwise_groups=8,
    streamed_rows=16,
    # Sapphire Rapids, 512x512 of bytes: one row takes 0.45 of the time, 4 rows 0.45, 8 rows 0.8, 12 rows 1.1; widened
    # ones 0.5, 2 rows 0.75, 3 rows 1.
    streamed_dot_group_rows=8,
    streamed_widened_rows=2,
    streamed_sums=4096,
    part_tiles=4,
    uneven_percent=10,
    unpacked_queries=4,
    paged_queries=16,  # Sapphire Rapids, 512 tokens of 20 heads: two tiles of 8 lines; 16 lines fit in the L1 cache.
    # Sapphire Rapids, alone on its core: 91 ns for a configuration and release, 7 ns to store a register.
    dot_products_per_cycle=2,
    tile_product_cycles=16,
    tile_accumulator_cycles=32,
    tile_configuration_cycles=200,
    depthwise_lines=2,
    depthwise_pixels=4,  # AVX2, with 3x3 and 5x5 filters, among 1x6, 1x7, 2x2, 2x3, 2x4, 3x3, 3x4.
    depthwise_elements=64,
    depthwise_columns=32,
    depthwise_dot_lanes=8,
    core_depthwise_lines=2,
    core_depthwise_pixels=7,
    unrolled_taps=1,
    unrolled_summands=9,
    winograd_tiles=24,  # From 18 to 144 tiles the time of a layer changes by 5 %.
    winograd_fewest_tiles=12,
    winograd_products=14,  # Measured as about 9; the rest is a margin, for loops around small products.
    winograd_read_products=4,
    winograd_fetched_products=1,
    winograd_packed_products=16,  # AVX2: 64 to 512 channels at 7 to 28 pixels; 11 where all is in the cache.
    strassen_products=7,
    strassen_read_products=3,
    row_sums=1,
    rows_together=8,
    rows_a_tree=2048,
    trees_together=8,
    single_rows=6,
    near_leaf_bytes=1 << 18,
    recurrent_block_percent=25,  # Filled up blocks weigh against many blocks.
    square_rows=8,
    square_bytes=16,
    repeated_elements=8,
    part_elements=64,
    # Transpositions of 64 Ki to 16 Mi floats, strips of 8 and 16, blocks of 16 to 128 and without end.
    few_sets=8,
    shared_lines=4,
    near_block=64,
    far_block=128,
    spread_block=1024,
)

_TILE_VECTORS: Mapping[int, int] = {128: 3, 256: 4, 512: 4}
"""Width of vectors → how many of them a row of a tile has. AVX-512: 6x4, among 8x3, 12x2 and 14x2."""

_MANY_REGISTERS = 32
"""The least number of vector registers for which that holds."""

_WIDEST_BITS = 512
"""The width of the widest vectors."""

_WIDEST_VECTORS: Mapping[str, int] = {"fetched_rows": 8, "long_run": 64}
"""
With vectors of 512 bits, two multiply-adds a cycle leave little time for other instructions, and a panel beyond the
nearest cache arrives too late. Sapphire Rapids: 1024x1024x256 takes 0.91 of the time, 1024x256x1024 and 1024x64x256
take 0.95; with 4 groups a step, or 6 or 12 rows ahead, as much within 1 %. Short runs would take 1.1.
"""

_STRASSEN_READ_PRODUCTS: Mapping[int, int] = {256: 2, 512: 5}
"""
Vector width → the number of products that reading an element is worth, for Strassen's algorithm: faster products,
higher numbers. Zen 5, with 32 to 64 layers of 512x512 and 768x768 in memory: AVX2 gains from 14 rows on, AVX-512 from
34.
"""

_RISCV_TILE: Mapping[str, int] = {"tile_rows": 6, "tile_vectors": 4}
"""
RISC-V with all registers, whose vector loads have no offset: 1.9 instructions for each product of vectors, compared
with 2.0 for 8x3; and 1.75 for each product of single floats, compared with 2.25 for 2x4.
"""

_MICROCONTROLLER: Mapping[str, int] = {
    "independent_accumulators": 1,
    "core_tile_rows": 1,
    "core_tile_accumulators": 4,
    "unrolled_groups": 4,
    "called_tiles": 1 << 16,
    "widened_groups": 128,
    "widened_tiles": 4,
    "prefetched_rows": 1,
    "core_depthwise_lines": 1,
    "core_depthwise_pixels": 4,
    "larger_operations": 1,
    "pool_operations": 16,  # RAM for a second image counts for more than a few steps.
}
"""
Arm's microcontrollers execute one instruction at a time; with 14 registers, 2x2 accumulators leave too few (instruction
counts from QEMU). With panels of words, 1 kB on the stack, LeNet with quantized values takes 0.9 of the instructions.
"""

_SCALAR_FLOATS: Mapping[str, int] = {
    "tile_rows": 6,
    "tile_vectors": 4,
    "unrolled_taps": 9,
    "row_sums": 16,
    "branched_operations": 8,
    "limit_operations": 4,
    "sized_depth": 1 << 10,
}
"""
The same with an FPU of 32 registers: 1.3 to 1.5 instructions per product; 1.35 to 1.55 for 5x4, 1.4 to 1.6 for 4x4.
With code specialized for their sizes, LeNet's convolutions take 0.8 of the instructions.
"""

_SMALL_SCALAR_FLOATS: Mapping[str, int] = {"tile_rows": 4, "tile_vectors": 4}
"""The same for small code: code for tiles with 6 rows is 1.2 times as large."""

_HELIUM: Mapping[str, int] = {"depthwise_lines": 1, "depth_codes": 16}
"""
With 8 vector registers: 0.9 instructions for four products of a depthwise convolution, compared with 1.2 for two lines.
The first convolution of a keyword-spotting network takes 0.24 of the instructions if its taps are channels.
"""

_NO_VECTORS: Mapping[str, int] = {"tile_rows": 2, "tile_vectors": 4, "larger_operations": 1}
"""Machines without vectors, and with at most 16 floating-point registers."""


_SIZE: Mapping[str, int] = {
    "quotient_vectors": 1,
    "depthwise_lines": 1,
    "depthwise_pixels": 3,
    "light_operations": 1,
    "unrolled_groups": 1,
    "fetched_rows": 1,
    "long_run": 1 << 30,
    "widened_groups": 1,
    "most_taps": 1,
    "unrolled_taps": 1,
    "unrolled_summands": 1,
}
"""For small code: on a Cortex-M4, quantized MobileNetV2 has 0.41 of the code, and 1.26 of the executed instructions."""


def measured(target: Target) -> KernelCosts:
    """The costs of a processor whose target specifies none."""
    found = _of_processor(target)
    return replace(found, **_SIZE) if target.policy.optimize == "size" else found


def _of_processor(target: Target) -> KernelCosts:
    """The costs of a processor, optimized for few executed instructions."""
    has_many = target.vector_registers >= _MANY_REGISTERS
    vectors = _TILE_VECTORS.get(target.vector_bits, _MEASURED.tile_vectors) if has_many else _MEASURED.tile_vectors
    # AVX-512: 2x7, among 1x6, 2x6, 2x8, 3x4, 3x7, 4x4, 4x5 and 4x7.
    found = replace(
        _MEASURED,
        tile_vectors=vectors,
        depthwise_pixels=7 if has_many else _MEASURED.depthwise_pixels,
        strassen_read_products=_STRASSEN_READ_PRODUCTS.get(target.vector_bits, _MEASURED.strassen_read_products),
    )
    if has_many and target.vector_bits == _WIDEST_BITS:
        found = replace(found, **_WIDEST_VECTORS)
    if has_many and target.family == "riscv":
        return replace(found, **_RISCV_TILE)
    is_microcontroller = target.architecture.startswith("thumb")
    if is_microcontroller:
        found = replace(found, **_MICROCONTROLLER)
    if target.vector_bits:
        return replace(found, **_HELIUM) if is_microcontroller else found
    if not (is_microcontroller and has_many):
        return replace(found, **_NO_VECTORS)
    return replace(found, **(_SMALL_SCALAR_FLOATS if target.policy.optimize == "size" else _SCALAR_FLOATS))

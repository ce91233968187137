"""Assumed costs of graphics processors; nothing was measured, because none was available."""

from __future__ import annotations

from dataclasses import replace

from glow_mlir.backends.cpu.measured import measured as measured_on_cpus
from glow_mlir.codegen.costs import KernelCosts
from glow_mlir.dialects.target import Target


def assumed(target: Target) -> KernelCosts:
    """The costs of a graphics processor whose target specifies none."""
    return replace(
        measured_on_cpus(target),
        part_operations=1,
        parts_per_thread=64,  # A processor hides the latencies of one thread behind other ones.
        max_parts_per_thread=64,
        # Registers of a thread: few enough for a quarter of all warps.
        independent_vectors=1,
        independent_accumulators=2,
        prologue_vectors=1,
        quotient_vectors=1,
        tile_rows=4,
        tile_vectors=2,
        fewest_rows=1,
        part_tiles=1,
        part_elements=4,  # 16 bytes a thread.
        prefetched_rows=1,
        square_rows=4,
        depthwise_lines=1,
        depthwise_pixels=4,
        dequantizing_rows=1,  # Blocks of threads have no kernel for narrow weights.
    )

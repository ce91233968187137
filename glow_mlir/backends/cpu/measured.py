"""What was measured of processors, on x86-64 with AVX-512: what a target says in `costs` takes its place."""

from __future__ import annotations

from glow_mlir.dialects.costs import Costs

MEASURED = Costs(
    operations_per_byte=4,  # A core does 16 to 32 operations a cycle, a cache moves 4 to 8 bytes.
    function_operations=16,  # Polynomials.
    division_operations=4,
    integer_division_operations=16,
    part_operations=1 << 18,  # 2 to 3 µs, while starting and ending a parallel loop takes 1.
    parts_per_thread=4,
    least_tap_filters=32,
    least_tap_channels=16,
    most_taps=5,
    most_phases=16,
    most_uneven_phases=64,
    channel_lanes=16,
)
"""The costs of every processor that says no others."""

"""
Stores that bypass the caches, for results larger than the last-level cache, which would not keep them anyway.

Such a store does not fetch the line that it overwrites, which saves a third of a copy's traffic. It has to be aligned:
elements before the first aligned address, and after the last whole vector, are stored as usual.
"""

from __future__ import annotations

from collections.abc import Callable

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.dialects.llvm_ops.access import ordering_attr
from glow_mlir.dialects.llvm_ops.atomics import FenceOp
from glow_mlir.dialects.target import Target

Body = Callable[[Index, int, int], None]
"""First element, lanes, and the alignment in bytes of a store that bypasses the caches; 0 for a usual store."""


def is_streamed(target: Target, result_bytes: int) -> bool:
    """Whether a store of a result of that size should bypass the caches."""
    return target.is_x86 and target.vector_bits > 0 and result_bytes >= target.l3_bytes


def streamed_loop(
    b: Builder, result: Value, element_bytes: int, elements: tuple[Index, Index], lanes: int, body: Body
) -> None:
    """Loop over the elements of a result from the first to before the second, in vectors where they are aligned."""
    alignment = min(b.target.vector_bits // 8, lanes * element_bytes)
    first, last = (b.index(element) for element in elements)
    missing = (-(b.address(result) + first * element_bytes) & (alignment - 1)) // element_bytes
    aligned = b.min(first + missing, last)
    whole = aligned + (last - aligned) // lanes * lanes
    for start, stop, step, store_alignment in (
        (first, aligned, 1, 0),
        (aligned, whole, lanes, alignment),
        (whole, last, 1, 0),
    ):
        with b.loop(start, stop, step) as i:
            body(i, step, store_alignment)
    # Stores that bypass the caches are not ordered: not even with a store that tells another thread about them.
    b.perform(FenceOp, (), {"ordering": ordering_attr("seq_cst")})

"""Instructions of x86 that LLVM has no operation for, on vectors of any width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i32, integer_of_width
from glow_mlir.codegen.builder.value import Value

_CURRENT_ROUNDING = 4
"""How AVX-512's intrinsics say: round as the processor is set to."""


def scale_by_instruction(b: Builder, x: Value, exponent: Value) -> Value:
    """
    Return a vector of f32 or f64 times two to the floor of `exponent`, rounded once: AVX-512's `vscalef`.

    At least 128 bits wide. The exponent may be any float.
    """
    return _by_registers(b, [x, exponent], lambda parts: _scalef(b, *parts))


def _by_registers(b: Builder, values: Sequence[Value], body: Callable[[Sequence[Value]], Value]) -> Value:
    """Return what `body` gives for each part of the values that fits a register, as one vector."""
    lanes = values[0].lanes
    if lanes * values[0].info.bits <= b.target.vector_bits:
        return body(values)
    half = lanes // 2
    low, high = (
        _by_registers(b, [b.shuffle(v, v, range(first, first + half)) for v in values], body) for first in (0, half)
    )
    return b.shuffle(low, high, range(lanes))


def _scalef(b: Builder, x: Value, exponent: Value) -> Value:
    width = x.lanes * x.info.bits
    name = f"llvm.x86.avx512.mask.scalef.p{'s' if x.info.bits == 32 else 'd'}.{width}"
    all_lanes = b.constant(-1, integer_of_width(max(8, x.lanes)))
    rounding = [b.constant(_CURRENT_ROUNDING, i32)] if width == 512 else []
    return b.intrinsic(name, (x, exponent, x, all_lanes, *rounding), x.type)


def permute_bytes_of_two(b: Builder, first: Value, second: Value, codes: Value) -> Value:
    """Return the byte of two registers of 512 bits at each of the codes, whose highest bit does not count."""
    return b.intrinsic("llvm.x86.avx512.vpermi2var.qi.512", (first, codes, second), codes.type)


def permute_floats(b: Builder, table: Value, codes: Value) -> Value:
    """Return the entry of a register of sixteen f32 at the lowest four bits of each of sixteen i32."""
    return b.intrinsic("llvm.x86.avx512.permvar.sf.512", (table, codes), table.type)

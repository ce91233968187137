"""Instructions of x86 that LLVM has no operation for, on vectors of any width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i8, i16, i32, integer_of_width, vector
from glow_mlir.codegen.builder.value import Value

_CURRENT_ROUNDING = 4
"""How AVX-512's intrinsics say: round as the processor is set to."""

BYTES = 64
"""How many bytes a register of AVX-512 has."""


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


def rounded_bytes(b: Builder, x: Value, offset: int, signed: bool) -> Value:
    """
    Return 64 f32 as bytes: rounded to the nearest, ties to even, plus an offset of 16 bits, and limited to their range.

    The numbers are below 2^31; the least byte is that of what is no number. Takes AVX-512 with instructions for bytes.
    """
    lanes = BYTES // 4
    all_lanes, rounding = b.constant(-1, i16), b.constant(_CURRENT_ROUNDING, i32)
    sums = vector(i32, lanes)
    integers = [
        b.intrinsic(
            "llvm.x86.avx512.mask.cvtps2dq.512",
            (b.shuffle(x, x, range(first, first + lanes)), b.constant(0, sums), all_lanes, rounding),
            sums,
        )
        for first in range(0, BYTES, lanes)
    ]
    words = [
        b.intrinsic("llvm.x86.avx512.packssdw.512", pair, vector(i16, 2 * lanes))
        for pair in (integers[:2], integers[2:])
    ]
    if offset:
        shift = b.constant(offset, words[0].type)
        words = [b.intrinsic("llvm.sadd.sat.v32i16", (word, shift), word.type) for word in words]
    packed = b.intrinsic(f"llvm.x86.avx512.pack{'ss' if signed else 'us'}wb.512", words, vector(i8, BYTES))
    # Packing takes four elements of each operand in turns.
    cells = b.bitcast(packed, i32)
    ordered = b.shuffle(cells, cells, [4 * (place % 4) + place // 4 for place in range(lanes)])
    return b.bitcast(ordered, i8)

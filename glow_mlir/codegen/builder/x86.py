"""Instructions of x86 that LLVM has no operation for, on vectors of any width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IntegerType

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i8, i16, i32, i64, integer_of_width, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.dialects.llvm_ops.intrinsics import SAddSatOp
from glow_mlir.dialects.target import Target

_CURRENT_ROUNDING = 4
"""The operand of AVX-512's intrinsics for the current rounding mode."""


def scale_by_instruction(b: Builder, x: Value, exponent: Value) -> Value:
    """
    Return a vector of f32 or f64 times two to the floor of `exponent`, rounded once: AVX-512's `vscalef`.

    The vector has at least 128 bits. The exponent may be any float.
    """
    return _by_registers(b, [x, exponent], lambda parts: _scalef(b, *parts))


def _by_registers(b: Builder, values: Sequence[Value], body: Callable[[Sequence[Value]], Value]) -> Value:
    """Apply `body` to each part of the values that fits a register, and return the results as one vector."""
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


def permute_bytes_of_two(b: Builder, first: Value, second: Value, indices: Value) -> Value:
    """Return the bytes of two registers of 512 bits at the indices, whose highest bit is ignored."""
    return b.intrinsic("llvm.x86.avx512.vpermi2var.qi.512", (first, indices, second), indices.type)


def permute_floats(b: Builder, table: Value, indices: Value) -> Value:
    """Return the entries of a register of sixteen f32 at the lowest four bits of sixteen i32."""
    return b.intrinsic("llvm.x86.avx512.permvar.sf.512", (table, indices), table.type)


def looks_up_floats(target: Target, bits: int) -> bool:
    """Whether the target has the instruction for `permute_floats_of_two`, with floats of that many bits."""
    return target.is_x86 and target.vector_bits == _WIDEST and "avx512f" in target.enabled and bits in (32, 64)


_WIDEST = 512
"""Bits of the registers of AVX-512."""


def permute_floats_of_two(b: Builder, first: Value, second: Value, indices: Value) -> Value:
    """
    Return the entries of two registers of 512 bits, of f32 or f64, at the lowest bits of indices of the same width.

    The entries of the second register follow those of the first.
    """
    kind = {32: "ps", 64: "pd"}[first.info.bits]
    return b.intrinsic(f"llvm.x86.avx512.vpermi2var.{kind}.512", (first, indices, second), first.type)


_PACKING: Mapping[int, tuple[frozenset[str], str]] = {
    128: (frozenset(), "llvm.x86.sse2.{name}.128"),
    256: (frozenset({"avx2"}), "llvm.x86.avx2.{name}"),
    512: (frozenset({"avx512bw"}), "llvm.x86.avx512.{name}.512"),
}
"""Bits of a register → the features that packing its integers needs, and the name of the intrinsics."""

MAX_PACKED = 4
"""The number of i32 registers that are packed into one of bytes; half as many give half of one."""


def packs_to_bytes(target: Target, lanes: int) -> bool:
    """Whether the target has the instructions for `pack_to_bytes`, with vectors of that many lanes."""
    bits = target.vector_bits
    if (
        not target.is_x86
        or bits not in _PACKING
        or lanes * 32 not in [bits * count for count in (MAX_PACKED // 2, MAX_PACKED)]
    ):
        return False
    return _PACKING[bits][0] <= target.enabled


def pack_to_bytes(b: Builder, x: Value, added: int | Value, signed: bool) -> Value:
    """
    Return two or four registers of i32 as bytes, with a number or an i16 added, saturated to the range of bytes.

    Intermediate values saturate to 16 bits, before the addition and after it.
    """
    bits, lanes = b.target.vector_bits, x.lanes
    size = bits // 32
    parts = [b.shuffle(x, x, range(first, first + size)) for first in range(0, lanes, size)]
    words = [_packed(b, "packssdw", parts[at], parts[at + 1], i16) for at in range(0, len(parts), 2)]
    if isinstance(added, Value) or added:
        words = [b.emit(SAddSatOp, (word, b.as_value(added, word.type)), word.type) for word in words]
    packed = b.bitcast(_packed(b, "packsswb" if signed else "packuswb", words[0], words[-1], i8), i32)
    # Registers are packed lane by lane of 128 bits: each has four numbers of the first register, of the next, …
    order = [_LANE_WORDS * at + number for number in range(len(parts)) for at in range(size // _LANE_WORDS)]
    return b.bitcast(b.shuffle(packed, packed, order), i8)


def multiplies_even_lanes(target: Target, lanes: int) -> bool:
    """Whether an instruction multiplies the even lanes of vectors of i32 to i64 (`vpmuldq`), for so many lanes."""
    return target.is_x86 and "avx2" in target.enabled and lanes > 1 and lanes % _LANE_WORDS == 0


def shifted_products(b: Builder, x: Value, y: Value, added: int, shift: int) -> Value:
    """
    Return the lower 32 bits of (x · y + `added`) / 2^`shift`, rounded down, of vectors of i32 multiplied as i64.

    `shift` is 1 to 31. LLVM's own code for it sorts lanes instead of multiplying even and odd ones.
    """
    (x_even, x_odd), (y_even, y_odd) = (
        (b.ashr(b.shl(pairs, _WORD), _WORD), b.ashr(pairs, _WORD)) for pairs in (b.bitcast(x, i64), b.bitcast(y, i64))
    )
    # The bits that are wanted of odd lanes move to where an odd lane has them.
    even, odd = b.lshr(x_even * y_even + added, shift), b.shl(x_odd * y_odd + added, _WORD - shift)
    lanes = [lane + x.lanes * (lane % 2) for lane in range(x.lanes)]
    return b.shuffle(b.bitcast(even, i32), b.bitcast(odd, i32), lanes)


_WORD = 32
"""Bits of a lane."""

_LANE_WORDS = 4
"""The number of i32 in a lane of 128 bits."""


def _packed(b: Builder, name: str, low: Value, high: Value, element: IntegerType) -> Value:
    """Return two registers of integers as one of integers of half the width, saturated to their range."""
    result = vector(element, 2 * low.lanes)
    return b.intrinsic(_PACKING[b.target.vector_bits][1].format(name=name), (low, high), result)

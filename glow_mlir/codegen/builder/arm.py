"""Instructions of Arm's microcontrollers that LLVM has no operation for, on scalars."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i16, i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.dialects.llvm_ops.intrinsics import SAddSatOp
from glow_mlir.dialects.target import Target


def rounds_and_saturates(target: Target, lanes: int) -> bool:
    """Whether single instructions round this many f32 to the nearest i32, and saturate integers."""
    return lanes == 1 and target.family == "arm" and target.singles


def round_saturating(b: Builder, number: Value) -> Value:
    """Return the i32 nearest to an f32, ties to even; saturates, and gives 0 for NaN (`vcvtr`)."""
    return b.bits_of(b.intrinsic("llvm.arm.vcvtr", (number,), number.type))


def limit(b: Builder, value: Value, offset: int | Value, low: int, high: int) -> Value:
    """
    Return an i32 plus an offset, clamped to `low` and `high`: by `qadd`, and by `usat` or `ssat` for limits of these.
    """
    if isinstance(offset, Value) or offset:
        value = b.emit(SAddSatOp, (value, b.as_value(offset, i32)), i32)
    bits = high.bit_length()
    if high == (1 << bits) - 1 and low in (0, -high - 1):
        name, width = ("llvm.arm.ssat", bits + 1) if low else ("llvm.arm.usat", bits)
        return b.intrinsic(name, (value, b.constant(width, i32)), i32)
    return b.min(b.max(value, low), high)


WORD_BYTES = 4
"""Bytes of a register of the core."""


def accumulates_bytes(target: Target) -> bool:
    """Whether instructions add the bytes of a word to accumulators of 16 bits, without vectors (Arm's DSP)."""
    return target.family == "arm" and not target.vector_bits and "dsp" in target.enabled


def add_bytes(b: Builder, accumulators: Sequence[Value], word: Value, signed: bool) -> Sequence[Value]:
    """
    Return two words of accumulators with the bytes of a word added: bytes 0 and 2 to the first, 1 and 3 to the second
    (`uxtab16`).
    """
    odd = b.intrinsic("llvm.fshr.i32", (word, word, b.constant(8, i32)), i32)
    name = f"llvm.arm.{'s' if signed else 'u'}xtab16"
    return [b.intrinsic(name, (total, part), i32) for total, part in zip(accumulators, (word, odd), strict=True)]


def halves(b: Builder, accumulators: Sequence[Value], signed: bool) -> Sequence[Value]:
    """Return the four accumulators in two such words as i32, in the order of the bytes."""
    even, odd = accumulators
    return [b.cast(b.cast(word, i16), i32, signed=signed) for word in (even, odd, b.lshr(even, 16), b.lshr(odd, 16))]

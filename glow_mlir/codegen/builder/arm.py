"""Instructions of Arm's microcontrollers that LLVM has no operation for, on scalars."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i16, i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.dialects.llvm_ops.intrinsics import SAddSatOp
from glow_mlir.dialects.target import Target


def rounds_and_saturates(target: Target, lanes: int) -> bool:
    """Whether an instruction converts so many f32 to the nearest i32, and integers are limited by instructions."""
    return lanes == 1 and target.family == "arm" and target.singles


def round_saturating(b: Builder, number: Value) -> Value:
    """Return the nearest i32 of an f32, ties to even: the last one for what is beyond, and 0 for NaN (`vcvtr`)."""
    return b.bits_of(b.intrinsic("llvm.arm.vcvtr", (number,), number.type))


def limit(b: Builder, value: Value, offset: int | Value, low: int, high: int) -> Value:
    """Return an i32 plus an offset, within limits, by `qadd`, and by `usat` or `ssat` where the limits are theirs."""
    if isinstance(offset, Value) or offset:
        value = b.emit(SAddSatOp, (value, b.as_value(offset, i32)), i32)
    bits = high.bit_length()
    if high == (1 << bits) - 1 and low in (0, -high - 1):
        name, width = ("llvm.arm.ssat", bits + 1) if low else ("llvm.arm.usat", bits)
        return b.intrinsic(name, (value, b.constant(width, i32)), i32)
    return b.min(b.max(value, low), high)


WORD_BYTES = 4
"""How many bytes a register of the core holds."""


def sums_bytes(target: Target) -> bool:
    """Whether instructions add the bytes of a word to sums of 16 bits, and there are no vectors (Arm's DSP)."""
    return target.family == "arm" and not target.vector_bits and "dsp" in target.enabled


def add_bytes(b: Builder, sums: Sequence[Value], word: Value, signed: bool) -> Sequence[Value]:
    """Return two words of sums with the bytes of a word added: those of even, and of odd places (`uxtab16`)."""
    odd = b.intrinsic("llvm.fshr.i32", (word, word, b.constant(8, i32)), i32)
    name = f"llvm.arm.{'s' if signed else 'u'}xtab16"
    return [b.intrinsic(name, (total, part), i32) for total, part in zip(sums, (word, odd), strict=True)]


def halves(b: Builder, sums: Sequence[Value], signed: bool) -> Sequence[Value]:
    """Return the four sums in such words, in the order of the bytes, as i32."""
    even, odd = sums
    return [b.cast(b.cast(word, i16), i32, signed=signed) for word in (even, odd, b.lshr(even, 16), b.lshr(odd, 16))]

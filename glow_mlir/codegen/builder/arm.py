"""Instructions of Arm's microcontrollers that LLVM has no operation for, on scalars."""

from __future__ import annotations

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.dialects.llvm_ops.intrinsics import SAddSatOp
from glow_mlir.dialects.target import Target


def rounds_and_saturates(target: Target, lanes: int) -> bool:
    """Whether an instruction converts so many f32 to the nearest i32, and integers are limited by instructions."""
    return lanes == 1 and target.family == "arm" and target.singles


def round_saturating(b: Builder, number: Value) -> Value:
    """Return the nearest i32 of an f32, ties to even: the last one for what is beyond, and 0 for NaN (`vcvtr`)."""
    return b.bits_of(b.intrinsic("llvm.arm.vcvtr", (number,), number.type))


def limit(b: Builder, value: Value, offset: int, low: int, high: int) -> Value:
    """Return an i32 plus an offset, within limits, by `qadd`, and by `usat` or `ssat` where the limits are theirs."""
    if offset:
        value = b.emit(SAddSatOp, (value, b.constant(offset, i32)), i32)
    bits = high.bit_length()
    if high == (1 << bits) - 1 and low in (0, -high - 1):
        name, width = ("llvm.arm.ssat", bits + 1) if low else ("llvm.arm.usat", bits)
        return b.intrinsic(name, (value, b.constant(width, i32)), i32)
    return b.min(b.max(value, low), high)

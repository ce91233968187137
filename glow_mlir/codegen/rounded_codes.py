"""Numbers of scalar bodies that become codes: rounded, shifted by a zero point, limited and converted in few steps."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Operation, SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import type_info
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.builder.x86 import BYTES, rounded_bytes

_WIDEST_CODE = 16
"""Bits of codes that f32 and i32 hold with any zero point of theirs."""

_LEAST_BYTE = -128
"""The least signed byte."""


@dataclass(frozen=True)
class RoundedCode:
    """
    What a conversion to integers gives: `number` rounded, ties to even, plus a zero point, limited, and 0 for NaN.

    `steps` are the operations between the number and the conversion, which nothing else needs.
    """

    number: SSAValue
    zero_point: int
    low: int
    high: int
    steps: tuple[Operation, ...]

    @staticmethod
    def of(op: Operation) -> RoundedCode | None:
        """The code that an operation converts to; `None` for any other operation."""
        if not isinstance(op, arith.FPToSIOp | arith.FPToUIOp) or op.operands[0].type != f32:
            return None
        bits = type_info(op.results[0].type).bits
        if bits > _WIDEST_CODE:
            return None
        signed = isinstance(op, arith.FPToSIOp)
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        value, zero_point, steps = op.operands[0], 0, list[Operation]()
        while isinstance(step := value.owner, Operation) and value.has_one_use():
            steps.append(step)
            if isinstance(step, math.RoundEvenOp):
                return RoundedCode(step.operands[0], zero_point, low, high, tuple(steps))
            known = _whole_number(step.operands[-1]) if len(step.operands) == 2 else None
            if known is None or zero_point:
                return None
            if isinstance(step, arith.MaximumfOp):
                low = max(low, known)
            elif isinstance(step, arith.MinimumfOp):
                high = min(high, known)
            elif isinstance(step, arith.AddfOp):
                zero_point = known
            else:
                return None
            value = step.operands[0]
        return None

    def emit(self, b: Builder, number: Value, op: Operation) -> Value:
        """The code of `number`, as `op` converts it."""
        if self.low:
            # What is no number has the code 0; where that is the least one, so has the least number.
            number = b.select(b.compare("uno", number, number), float(-self.zero_point), number)
        low, high = float(self.low - self.zero_point), float(self.high - self.zero_point)
        if self._fills_bytes(b, number, op):
            signed = isinstance(op, arith.FPToSIOp)
            if self.low > (_LEAST_BYTE if signed else 0):
                number = b.max(number, low)
            # What is no number stays none, and becomes the least byte.
            return rounded_bytes(b, b.min(b.constant(high, number.type), number), self.zero_point, signed)
        whole = b.round_to_i32(b.min(b.max(number, low), high))
        return b.cast(whole + self.zero_point, op.results[0].type)

    def _fills_bytes(self, b: Builder, number: Value, op: Operation) -> bool:
        """Whether the codes are bytes that fill a register, so that packing limits them."""
        fits = (
            number.lanes == BYTES and type_info(op.results[0].type).bits == 8 and abs(self.zero_point) < BYTES * BYTES
        )
        return fits and b.target.vector_bits == 8 * BYTES and "avx512bw" in b.target.enabled


def _whole_number(value: SSAValue) -> int | None:
    """A constant of f32 that is a whole number as codes are; `None` for any other value."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr):
        return None
    number = owner.value.value.data
    return int(number) if abs(number) < 1 << _WIDEST_CODE and number == int(number) else None

"""Quantization in scalar bodies: numbers are rounded, shifted by a zero point, clamped and converted in few steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, i16, i32
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.codegen.builder.arm import limit, round_saturating, rounds_and_saturates
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import type_info
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.builder.x86 import pack_to_bytes, packs_to_bytes
from glow_mlir.dialects.glow_low.body import YieldOp
from glow_mlir.dialects.scalar_parameters import MAX_NEAR_ZERO_POINT, parameter_number, whole_number
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass

_BYTE = 8

_FAR = 2.0**30
"""A number beyond all quantized values that still fits i32."""

_MAX_BITS = 16
"""The maximum bits of quantized values, which f32 and i32 hold with any zero point."""


Conversion = arith.SIToFPOp | arith.UIToFPOp
"""A conversion of integers to floats."""


@dataclass(frozen=True)
class RoundedValue:
    """
    A conversion to quantized values: `number` rounded, ties to even, plus a zero point, clamped, and 0 for NaN.

    `steps` are the operations between the number and the conversion, which have no other users. The zero point may be
    the scalar parameter of the number `parameter`, which is not 0, or the byte that `offset` converts.
    """

    number: SSAValue
    zero_point: int
    low: int
    high: int
    steps: tuple[Operation, ...]
    parameter: int | None = None
    offset: Conversion | None = None

    @staticmethod
    def of(op: Operation, uniform: Collection[SSAValue] = ()) -> RoundedValue | None:
        """
        The quantized value that an operation converts to; `None` for any other operation.

        The arguments in `uniform` have the same value in all lanes.
        """
        if not isinstance(op, arith.FPToSIOp | arith.FPToUIOp) or op.operands[0].type != f32:
            return None
        bits = type_info(op.results[0].type).bits
        if bits > _MAX_BITS:
            return None
        signed = isinstance(op, arith.FPToSIOp)
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        value, zero_point, steps = op.operands[0], 0, list[Operation]()
        parameter: int | None = None
        offset: Conversion | None = None
        while isinstance(step := value.owner, Operation) and value.has_one_use():
            steps.append(step)
            if isinstance(step, math.RoundEvenOp):
                return RoundedValue(step.operands[0], zero_point, low, high, tuple(steps), parameter, offset)
            if len(steps) == 1 and (offset := _uniform_offset(step, uniform)) is not None:
                value = step.operands[0]
                continue
            known = _whole_number(step.operands[-1]) if len(step.operands) == 2 else None
            if known is None or zero_point or offset is not None:
                return None
            if isinstance(step, arith.MaximumfOp):
                low = max(low, known)
            elif isinstance(step, arith.MinimumfOp):
                high = min(high, known)
            elif isinstance(step, arith.AddfOp):
                zero_point, parameter = known, parameter_number(step.operands[-1])
            else:
                return None
            value = step.operands[0]
        return None

    def emit(self, b: Builder, number: Value, op: Operation, uniform: Mapping[SSAValue, Value]) -> Value:
        """
        The quantized value of `number`, as `op` converts it; bytes that are stored are packed, several registers at
        once. `uniform` has the scalar of the offset.
        """
        offset: Value | None = None
        if (given := self.offset) is not None:
            offset = b.cast(uniform[given.operands[0]], i32, signed=isinstance(given, arith.SIToFPOp))
        if rounds_and_saturates(b.target, number.lanes):
            return b.cast(self._saturated(b, number, offset), op.results[0].type)
        if self.low:
            # NaN becomes 0; if 0 is the lower bound, clamping does that.
            number = b.select(b.compare("uno", number, number), self._above(b, 0, offset), number)
        is_near = abs(self.zero_point) <= MAX_NEAR_ZERO_POINT
        if is_near and _is_byte(op) and packs_to_bytes(b.target, number.lanes) and _is_stored(op):
            return self._packed(b, number, isinstance(op, arith.FPToSIOp), offset)
        low, high = (self._above(b, bound, offset) for bound in (self.low, self.high))
        return b.cast(b.round_to_i32(b.min(b.max(number, low), high)) + self._added(b, offset), op.results[0].type)

    def _above(self, b: Builder, value: int, offset: Value | None) -> float | Value:
        """The difference between a quantized value and the zero point, as f32."""
        if offset is not None:
            return b.cast(b.constant(value, i32) - offset, f32)
        if (number := self.parameter) is None:
            return float(value - self.zero_point)
        return b.once(("above", value, number), lambda: b.constant(float(value), f32) - b.scalar(number, f32))

    def _added(self, b: Builder, offset: Value | None) -> int | Value:
        """The zero point, as i32."""
        if offset is not None:
            return offset
        return self.zero_point if self.parameter is None else b.scalar(self.parameter, i32)

    def _saturated(self, b: Builder, number: Value, offset: Value | None) -> Value:
        """The quantized value of `number` as i32, rounded and clamped by instructions of the core."""
        if self.zero_point or offset is not None:
            # These instructions give 0 for NaN, and would then add the zero point.
            zero = self._above(b, 0, offset)
            number = b.select(b.compare("uno", number, number), zero, number) if self.low else b.max(number, zero)
        return limit(b, round_saturating(b, number), self._added(b, offset), self.low, self.high)

    def _packed(self, b: Builder, number: Value, signed: bool, offset: Value | None) -> Value:
        """The quantized values of `number` as bytes; NaN gives the smallest one."""
        # A conversion to i32 gives the smallest integer for numbers out of range.
        near = b.min(b.constant(_FAR, number.type), number)
        added: int | Value = self.zero_point if offset is None else b.cast(offset, i16)
        if (parameter := self.parameter) is not None:
            added = b.once(("half", parameter), lambda: b.cast(b.scalar(parameter, i32), i16))
        packed = pack_to_bytes(b, b.round_to_i32(near), added, signed)
        lower, upper = (-(1 << (_BYTE - 1)), (1 << (_BYTE - 1)) - 1) if signed else (0, (1 << _BYTE) - 1)
        largest, smallest = (b.max, b.min) if signed else (b.umax, b.umin)
        if self.low > lower:
            packed = largest(packed, self.low)
        return smallest(packed, self.high) if self.high < upper else packed


def _uniform_offset(op: Operation, uniform: Collection[SSAValue]) -> Conversion | None:
    """The conversion of the byte that an operation adds, if that is the same in all lanes; else `None`."""
    added = op.operands[-1].owner
    if not isinstance(op, arith.AddfOp) or not isinstance(added, arith.SIToFPOp | arith.UIToFPOp):
        return None
    return added if added.operands[0] in uniform and type_info(added.operands[0].type).bits == _BYTE else None


def stores_bytes(block: Block, uniform: Collection[SSAValue] = ()) -> bool:
    """Whether a body rounds numbers to bytes that are stored and not read; `uniform` as in `RoundedValue.of`."""
    return any(
        RoundedValue.of(op, uniform) is not None and _is_byte(op) and _is_stored(op) for op in own_operations(block)
    )


def _is_byte(op: Operation) -> bool:
    return type_info(op.results[0].type).bits == _BYTE


def _is_stored(op: Operation) -> bool:
    """Whether a body only yields the result of an operation."""
    return all(isinstance(use.operation, YieldOp) for use in op.results[0].uses)


def _whole_number(value: SSAValue) -> int | None:
    """The number of an f32 constant that is whole and in the range of quantized values; `None` for any other value."""
    owner = value.owner
    return whole_number(owner.value) if isinstance(owner, arith.ConstantOp) else None

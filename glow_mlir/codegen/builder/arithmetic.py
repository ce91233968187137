"""The part of the builder that computes: arithmetic, comparison, choice, rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.dialects.llvm import (
    AddOp,
    AndOp,
    AShrOp,
    CallIntrinsicOp,
    FAbsOp,
    FAddOp,
    FCeilOp,
    FCmpPredicateFlag,
    FCopySignOp,
    FDivOp,
    FFloorOp,
    FMAOp,
    FMulOp,
    FNegOp,
    FSqrtOp,
    FSubOp,
    ICmpPredicateFlag,
    LShrOp,
    MulOp,
    OrOp,
    SDivOp,
    ShlOp,
    SRemOp,
    SubOp,
    UDivOp,
    URemOp,
    XOrOp,
)
from xdsl.ir import Attribute, Operation

from glow_mlir.codegen.builder.emission import Emission
from glow_mlir.codegen.builder.types import NO_FAST_MATH, i1, i32, i32_array, i64, vector
from glow_mlir.codegen.builder.value import Number, Value
from glow_mlir.dialects.llvm_ops import intrinsics, values

NO_OVERFLOW: Mapping[str, Attribute] = {"overflowFlags": IntegerAttr(0, i32)}
INT_PREDICATES = {
    name: {"predicate": IntegerAttr(ICmpPredicateFlag(flag).to_int(), i64)}
    for name, flag in {
        **{flag.value: flag.value for flag in ICmpPredicateFlag},
        **{"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"},
    }.items()
}
_FLOAT_PREDICATES = {
    name: {"predicate": IntegerAttr(FCmpPredicateFlag(flag).to_int(), i64), **NO_FAST_MATH}
    for name, flag in {
        **{flag.value: flag.value for flag in FCmpPredicateFlag},
        **{"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"},
    }.items()
}

_FENCED = {
    **dict.fromkeys(("lt", "le", "olt", "ole", "ugt", "uge", "uno", "ord", "one", "ueq"), 1),
    **dict.fromkeys(("gt", "ge", "ogt", "oge", "ult", "ule"), 0),
}
"""
Predicate → the operand to fence on Helium: if it is one number in all lanes, LLVM swaps the operands, which gives true
for NaN.
"""


class Arithmetic(Emission):
    """Emits arithmetic on scalars and vectors of numbers."""

    def _arithmetic(
        self,
        a: Number,
        b: Number,
        float_kind: type[Operation] | None,
        int_kind: type[Operation] | None,
        int_properties: Mapping[str, Attribute] | None = None,
    ) -> Value:
        x, y = self._pair(a, b)
        if x.info.is_float:
            if float_kind is None:
                raise TypeError(f"no such operation on '{x.type}'")
            return self.emit(float_kind, (x, y), x.type, NO_FAST_MATH)
        if int_kind is None:
            raise TypeError(f"no such operation on '{x.type}'")
        return self.emit(int_kind, (x, y), x.type, int_properties)

    def add(self, a: Number, b: Number) -> Value:
        if _is_zero_index(b) and isinstance(a, Value) and not a.info.is_float:
            return a
        if _is_zero_index(a) and isinstance(b, Value) and not b.info.is_float:
            return b
        return self._arithmetic(a, b, FAddOp, AddOp, NO_OVERFLOW)

    def sub(self, a: Number, b: Number) -> Value:
        if _is_zero_index(b) and isinstance(a, Value) and not a.info.is_float:
            return a
        return self._arithmetic(a, b, FSubOp, SubOp, NO_OVERFLOW)

    def mul(self, a: Number, b: Number) -> Value:
        if isinstance(b, int) and isinstance(a, Value) and not a.info.is_float:
            if b == 1:
                return a
            if b == 0:
                return self.constant(0, a.type)
        elif isinstance(a, int) and isinstance(b, Value) and not b.info.is_float:
            return self.mul(b, a) if a in (0, 1) else self._arithmetic(b, a, None, MulOp, NO_OVERFLOW)
        return self._arithmetic(a, b, FMulOp, MulOp, NO_OVERFLOW)

    def fdiv(self, a: Number, b: Number) -> Value:
        return self._arithmetic(a, b, FDivOp, None)

    def sdiv(self, a: Number, b: Number) -> Value:
        """Return the quotient of two signed integers, rounded towards zero."""
        return self._arithmetic(a, b, None, SDivOp)

    def udiv(self, a: Number, b: Number) -> Value:
        return a if b == 1 and isinstance(a, Value) else self._arithmetic(a, b, None, UDivOp)

    def srem(self, a: Number, b: Number) -> Value:
        """Return the remainder of two signed integers, with the sign of the first."""
        return self._arithmetic(a, b, None, SRemOp)

    def urem(self, a: Number, b: Number) -> Value:
        return self._arithmetic(a, b, None, URemOp)

    def and_(self, a: Number, b: Number) -> Value:
        return self._arithmetic(a, b, None, AndOp)

    def or_(self, a: Number, b: Number) -> Value:
        return self._arithmetic(a, b, None, OrOp)

    def xor(self, a: Number, b: Number) -> Value:
        return self._arithmetic(a, b, None, XOrOp)

    def shl(self, a: Number, b: Number) -> Value:
        return self._arithmetic(a, b, None, ShlOp, NO_OVERFLOW)

    def lshr(self, a: Number, b: Number) -> Value:
        """Return `a` shifted right, filled with zeros."""
        return self._arithmetic(a, b, None, LShrOp)

    def ashr(self, a: Number, b: Number) -> Value:
        return self._arithmetic(a, b, None, AShrOp)

    def neg(self, a: Value) -> Value:
        if a.info.is_float:
            return self.emit(FNegOp, (a,), a.type, NO_FAST_MATH)
        return self.sub(0, a)

    def fma(self, a: Number, b: Number, c: Number) -> Value:
        """Return `a * b + c`, rounded once if the target has a fused multiply-add, else twice."""
        typed = next(value for value in (a, b, c) if isinstance(value, Value) and _widest(value, a, b, c))
        x, y, z = (self.as_value(value, typed.type) for value in (a, b, c))
        if not self.target.fuses(x.info.bits):
            return self.add(self.mul(x, y), z)
        return self.emit(FMAOp, (x, y, z), x.type, NO_FAST_MATH)

    # ---- comparison and choice

    def compare(self, predicate: str, a: Number, b: Number) -> Value:
        x, y = self._pair(a, b)
        result = vector(i1, x.lanes)
        if x.info.is_float:
            operands = [x, y]
            if x.info.is_vector and "mve.fp" in self.target.enabled and predicate in _FENCED:
                fenced = _FENCED[predicate]
                operands[fenced] = self.fenced(operands[fenced])
            return self.emit(values.FCmpOp, operands, result, _FLOAT_PREDICATES[predicate])
        return self.emit(values.ICmpOp, (x, y), result, INT_PREDICATES[predicate])

    def fenced(self, value: Value) -> Value:
        """Return floats that LLVM does not combine with their users."""
        return self.intrinsic("llvm.arithmetic.fence", (value,), value.type)

    def select(self, condition: Value, a: Number, b: Number) -> Value:
        """Return `a` where the condition holds, else `b`."""
        x, y = self._pair(a, b)
        if condition.info.is_vector and not x.info.is_vector:
            x, y = self.splat(x, condition.lanes), self.splat(y, condition.lanes)
        return self.emit(values.SelectOp, (condition, x, y), x.type, NO_FAST_MATH)

    def min(self, a: Number, b: Number) -> Value:
        x, y = self._pair(a, b)
        return self.select(self.compare("lt", x, y), x, y)

    def max(self, a: Number, b: Number) -> Value:
        x, y = self._pair(a, b)
        return self.select(self.compare("gt", x, y), x, y)

    def minimum(self, a: Number, b: Number) -> Value:
        """Return the smaller of two floats, or NaN if either is NaN."""
        x, y = self._pair(a, b)
        return self.select(self.compare("uno", x, x), x, self.min(x, y))

    def maximum(self, a: Number, b: Number) -> Value:
        """Return the larger of two floats, or NaN if either is NaN."""
        x, y = self._pair(a, b)
        return self.select(self.compare("uno", x, x), x, self.max(x, y))

    def largest_number(self, a: Value, b: Value) -> Value:
        """Return the larger of two floats; any value if one of them is NaN."""
        return self._of_numbers("llvm.maxnum", a, b) or self.max(a, b)

    def smallest_number(self, a: Value, b: Value) -> Value:
        """Return the smaller of two floats; any value if one of them is NaN."""
        return self._of_numbers("llvm.minnum", a, b) or self.min(a, b)

    def _of_numbers(self, intrinsic: str, a: Value, b: Value) -> Value | None:
        """The result of an intrinsic that is one instruction for scalars on some machines; `None` on others."""
        if not self.target.maxima or a.lanes > 1 or not self.target.computes(a.info.bits):
            return None
        return self.intrinsic(f"{intrinsic}.f{a.info.bits}", (a, b), a.type)

    def umin(self, a: Number, b: Number) -> Value:
        """Return the smaller of two unsigned integers."""
        return self._arithmetic(a, b, None, intrinsics.UMinOp)

    def umax(self, a: Number, b: Number) -> Value:
        """Return the larger of two unsigned integers."""
        return self._arithmetic(a, b, None, intrinsics.UMaxOp)

    # ---- single instructions on floats

    def sqrt(self, a: Value) -> Value:
        """Return the correctly rounded square root."""
        return self.emit(FSqrtOp, (a,), a.type, NO_FAST_MATH)

    def fabs(self, a: Value) -> Value:
        """Return the absolute value of a float."""
        return self.emit(FAbsOp, (a,), a.type, NO_FAST_MATH)

    def copysign(self, magnitude: Number, sign: Value) -> Value:
        """Return a float with the magnitude of one value and the sign of another."""
        return self.emit(FCopySignOp, (self.as_value(magnitude, sign.type), sign), sign.type, NO_FAST_MATH)

    def round_even(self, a: Value) -> Value:
        """Return the nearest integral value, ties to even."""
        if self.target.rounds(a.info.bits):
            return self.emit(intrinsics.RoundEvenOp, (a,), a.type, NO_FAST_MATH)
        # Adding a number so large that no fraction fits rounds by the hardware's rule: ties to even.
        large = self.constant({16: 1024.0, 32: 8388608.0, 64: 4503599627370496.0}[a.info.bits], a.type)
        magnitude = self.fabs(a)
        rounded = self.copysign(self.sub(self.add(magnitude, large), large), a)
        return self.select(self.compare("lt", magnitude, large), rounded, a)

    def floor(self, a: Value) -> Value:
        """Return the largest integral value that is not above `a`."""
        if self.target.rounds(a.info.bits):
            return self.emit(FFloorOp, (a,), a.type, NO_FAST_MATH)
        near = self.round_even(a)
        return self.copysign(self.select(self.compare("gt", near, a), near - 1.0, near), a)

    def ceil(self, a: Value) -> Value:
        """Return the smallest integral value that is not below `a`."""
        if self.target.rounds(a.info.bits):
            return self.emit(FCeilOp, (a,), a.type, NO_FAST_MATH)
        near = self.round_even(a)
        return self.copysign(self.select(self.compare("lt", near, a), near + 1.0, near), a)

    def truncate(self, a: Value) -> Value:
        """Return `a` without its fraction."""
        if self.target.rounds(a.info.bits):
            return self.emit(intrinsics.FTruncOp, (a,), a.type, NO_FAST_MATH)
        return self.copysign(self.floor(self.fabs(a)), a)

    def intrinsic(self, name: str, operands: Sequence[Value], result: Attribute) -> Value:
        """Return the result of an LLVM intrinsic that has no operation; `name` starts with `llvm.`."""
        return self.emit(CallIntrinsicOp, operands, result, _intrinsic(name, len(operands)))

    def perform_intrinsic(self, name: str, operands: Sequence[Value]) -> None:
        """Emit an LLVM intrinsic that has neither an operation nor a result."""
        self.perform(CallIntrinsicOp, operands, _intrinsic(name, len(operands)))


@cache
def _intrinsic(name: str, operands: int) -> Mapping[str, Attribute]:
    """The properties of a call of an intrinsic with that number of operands."""
    return {
        "intrin": StringAttr(name),
        "op_bundle_sizes": i32_array(),
        "operandSegmentSizes": i32_array(operands, 0),
        **NO_FAST_MATH,
    }


def _widest(value: Value, *others: Number) -> bool:
    """Whether `value` is a vector, or none of the others is one."""
    return value.info.is_vector or not any(isinstance(other, Value) and other.info.is_vector for other in others)


def _is_zero_index(value: Number) -> bool:
    return isinstance(value, int) and value == 0

"""The part of the builder that converts between types and moves lanes of vectors."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.llvm import (
    BitcastOp,
    FPExtOp,
    FPTruncOp,
    InsertElementOp,
    PtrToIntOp,
    SExtOp,
    SIToFPOp,
    TruncOp,
    ZExtOp,
)
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.arithmetic import Arithmetic
from glow_mlir.codegen.builder.types import f32, i1, i32, i64, integer_of_width, type_info, vector
from glow_mlir.codegen.builder.value import Number, Value
from glow_mlir.dialects.llvm_ops import values, vectors

_MANTISSAS = {32: 24, 64: 53}
"""Bits of a float → bits of whole numbers that it has without gaps."""

_NARROW = 16
"""Integers of up to this many bits are narrower than the vectors of floats that are converted to them."""


class Lanes(Arithmetic):
    """Emits conversions and moves between lanes."""

    def cast(self, value: Value, element: Attribute, signed: bool = True) -> Value:
        """
        Return the value converted to another element type, lane by lane.

        `signed` says whether integers on either side are signed; an i1 is 0 or 1, and any number but 0 becomes a true
        i1. A float outside the range of an integer type gives an unspecified integer; use `to_int_saturating` to clamp
        it.
        """
        source, target = value.info, type_info(element)
        result = vector(element, source.lanes)
        if source.element is target.element or source.element == target.element:
            return value
        if target.bits == 1:
            return self.compare("ne", value, 0)
        if source.is_float and target.is_float:
            return self._resize_float(value, result, source.bits, target.bits)
        if source.is_float:
            return self.emit(values.FPToSIOp if signed else values.FPToUIOp, (value,), result)
        if target.is_float:
            unsigned = not signed or source.bits == 1
            number = self.emit(values.UIToFPOp if unsigned else SIToFPOp, (value,), result)
            # LLVM fails on some vectors of Helium's that are converted and multiplied by a power of two.
            return self.fenced(number) if value.lanes > 1 and "mve.fp" in self.target.enabled else number
        if source.bits > target.bits:
            return self.emit(TruncOp, (value,), result)
        return self.emit(SExtOp if signed and source.bits > 1 else ZExtOp, (value,), result)

    def index(self, value: Number) -> Value:
        """Return an extent or offset as an integer as wide as a pointer."""
        found = self.as_value(value, self.index_type)
        return found if found.type is self.index_type else self.cast(found, self.index_type)

    def _resize_float(self, value: Value, result: Attribute, source: int, target: int) -> Value:
        if source == target:
            # f16 and bf16 have no conversion into each other.
            return self.cast(self.cast(value, f32), type_info(result).element)
        return self.emit(FPExtOp if source < target else FPTruncOp, (value,), result)

    def to_int_saturating(self, value: Value, element: Attribute, signed: bool = True) -> Value:
        """Return a float as an integer, rounded towards zero and clamped to the range of the type; NaN gives 0."""
        bits = type_info(element).bits
        if bits <= _NARROW:
            # LLVM would split vectors into scalars.
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
            number = self.select(self.compare("uno", value, value), 0.0, value) if signed else value
            return self.cast(self.cast(self.min(self.max(number, float(low)), float(high)), i32), element)
        if value.lanes > 1 and self.target.is_x86:
            return self._clamped_to_int(value, element, signed)
        result = vector(element, value.lanes)
        name = f"llvm.fpto{'s' if signed else 'u'}i.sat"
        return self.intrinsic(name, (value,), result)

    def _clamped_to_int(self, value: Value, element: Attribute, signed: bool) -> Value:
        """The same of a vector, for x86, where LLVM would split it into scalars."""
        bits = type_info(element).bits
        end = 2.0 ** (bits - signed)
        largest = int(end) - 1
        # The largest number of the integer type, or the number below its end that the float type has.
        below = (
            float(largest)
            if largest < 1 << _MANTISSAS[value.info.bits]
            else end - end / (1 << _MANTISSAS[value.info.bits])
        )
        clamped = self.max(self.min(value, below), -end if signed else 0.0)
        number = self.cast(clamped, element, signed=signed)
        if below != largest:
            number = self.select(self.compare("oge", value, end), largest if signed else -1, number)
        return self.select(self.compare("uno", value, value), 0, number)

    def round_to_i32(self, value: Value) -> Value:
        """Return an f32, which is within the range of i32, as the nearest integer, ties to even."""
        if self.target.rounding_conversion:
            return self.intrinsic("llvm.lrint", (value,), vector(i32, value.lanes))
        return self.cast(self.round_even(value), i32)

    def bitcast(self, value: Value, element: Attribute) -> Value:
        """Return the same bits as another element type; narrower elements make more lanes."""
        result = vector(element, value.lanes * value.info.bits // type_info(element).bits)
        return self.emit(BitcastOp, (value,), result)

    def bits_of(self, value: Value) -> Value:
        """Return the bits of a float as an integer of its width."""
        return self.bitcast(value, integer_of_width(value.info.bits))

    def address(self, pointer: Value) -> Value:
        """Return a pointer as an integer of its width."""
        return self.emit(PtrToIntOp, (pointer,), self.index_type)

    # ---- lanes

    def extract(self, a: Value, lane: Number) -> Value:
        """Return one lane of a vector; of a scalar, the scalar itself."""
        if not a.info.is_vector:
            return a
        return self.emit(vectors.ExtractElementOp, (a, self.index(lane)), a.info.element)

    def insert(self, a: Value, scalar: Number, lane: Number) -> Value:
        """Return a vector with one lane replaced."""
        element = self.as_value(scalar, a.info.element)
        if not a.info.is_vector:
            return element
        return self.emit(InsertElementOp, (a, element, self.index(lane)), a.type)

    def iota(self, element: Attribute, lanes: int) -> Value:
        """Return the vector 0, 1, 2, …"""
        return self.constant(list(range(lanes)) if lanes > 1 else 0, vector(element, lanes))

    def reduce(self, a: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """
        Return all lanes combined into one scalar, by halves: lane i with lane i + n/2, and so on.

        `combine` takes two values of one type, vector or scalar; the number of lanes is a power of two. The
        order is fixed, so that the result is the same on every target with the same number of lanes.
        """
        if a.lanes & (a.lanes - 1):
            raise ValueError(f"cannot halve {a.lanes} lanes down to one")
        while (half := a.lanes // 2) > 0:
            a = combine(self._lanes(a, 0, half), self._lanes(a, half, half))
        return a

    def any(self, mask: Value) -> Value:
        """Return whether a lane of a vector of i1, or an i1, is set."""
        return self.intrinsic("llvm.vector.reduce.or", (mask,), i1) if mask.info.is_vector else mask

    def mask_bits(self, mask: Value) -> Value:
        """Return the lanes of a mask of up to 64 lanes as bits of an i64, the first lane as the lowest bit."""
        lanes = mask.lanes
        if self.target.is_x86 and lanes % 8 == 0:
            return self.cast(self.bitcast(mask, integer_of_width(lanes)), i64, signed=False)
        word = i32 if lanes < 32 else i64
        bits = self.constant([1 << lane for lane in range(lanes)] if lanes > 1 else 1, vector(word, lanes))
        chosen = self.select(mask, bits, self.constant(0, vector(word, lanes)))
        return self.cast(self.reduce(chosen, self.or_), i64, signed=False)

    def lowest_bit(self, bits: Value) -> Value:
        """Return the number of the lowest bit that is set in an i64, which is not 0."""
        zeros = self.intrinsic("llvm.ctlz", (bits & -bits, self.constant(1, i1)), i64)
        return self.sub(self.constant(63, i64), zeros)

    def _lanes(self, a: Value, start: int, count: int) -> Value:
        if count == 1:
            return self.extract(a, start)
        return self.shuffle(a, a, range(start, start + count))

"""The bottom layer of the builder: appends operations to a block, and makes each constant once."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.dialects.llvm import BitcastOp, ConstantOp, InsertElementOp, ShuffleVectorOp, ZeroOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.builder.types import (
    TypeInfo,
    i32_array,
    i64,
    index_type,
    integer_of_width,
    ptr,
    type_info,
    vector,
)
from glow_mlir.codegen.builder.value import Number, Operators, Value
from glow_mlir.dialects.llvm_ops import values
from glow_mlir.dialects.target import Target
from glow_mlir.support.identity import MAX_KEPT
from glow_mlir.xdsl_patches.creation import append, created


class Emission(Operators):
    """Appends operations to the current block of one function."""

    def __init__(self, target: Target, block: Block) -> None:
        self.target = target
        self.block = block
        self.constants: list[Operation] = []
        """The constants made so far; they go to the top of the function when it is finished."""
        self.index_type = integer_of_width(target.pointer_bits)
        self._constant_values: dict[_Key, Value] = {}
        self.at_top = Block()
        """Operations that go to the top of the function, after the constants."""
        self._made_once: dict[Hashable, Value] = {}

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[Value],
        result: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> Value:
        """Append an operation with one result of type `result` and return the result."""
        op = created(kind, [operand.ssa for operand in operands], (result,), properties)
        append(self.block, op)
        (ssa,) = op.results
        return Value(self, ssa)

    def perform(
        self,
        kind: type[Operation],
        operands: Sequence[Value],
        properties: Mapping[str, Attribute] | None = None,
    ) -> None:
        """Append an operation without result."""
        append(self.block, created(kind, [operand.ssa for operand in operands], (), properties))

    def constant(self, value: float | Sequence[float], type_: Attribute) -> Value:
        """
        Return a constant of a number or vector type; one number fills all lanes of a vector.

        Each constant exists once per function, at its top, whichever block asks for it first.
        """
        if type_ is index_type:
            type_ = self.index_type
        key = (id(type_), value) if type(value) is int else _key(value, type_)
        known = self._constant_values.get(key)
        if known is None:
            known = self._constant_values[key] = Value(self, self._add_constant(value, type_))
        return known

    def _add_constant(self, value: float | Sequence[float], type_: Attribute) -> SSAValue:
        info = type_info(type_)
        lanes = [value] if isinstance(value, (int, float)) else value
        if not info.is_vector or not info.is_float or all(_prints_as_decimal(lane, info.bits) for lane in lanes):
            op = created(ConstantOp, (), (type_,), {"value": _literal(value, type_)})
            op.results[0].name_hint = self._name_of(value, info)
            self.constants.append(op)
            return op.results[0]
        # xDSL reads the hexadecimal floats of a dense attribute as integers: the bits go in as integers.
        bits = [int.from_bytes(struct.pack("<d" if info.bits == 64 else "<f", lane), "little") for lane in lanes]
        integers = vector(IntegerType(info.bits), info.lanes)
        pattern = self._add_constant(bits if len(bits) > 1 else bits[0], integers)
        cast_op = created(BitcastOp, (pattern,), (type_,))
        self.constants.append(cast_op)
        return cast_op.results[0]

    def _name_of(self, value: float | Sequence[float], info: TypeInfo) -> str:
        """The name of a constant in text, as in MLIR: an integer has its number, and its type if it is no index."""
        if info.is_vector or info.is_float or not isinstance(value, int):
            return "cst"
        if info.bits == 1:
            return "true" if value else "false"
        return f"c{value}" if info.bits == self.target.pointer_bits else f"c{value}_i{info.bits}"

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value that `make` emits at the top of the function, the first time that `key` is asked for."""
        if key not in self._made_once:
            block, self.block = self.block, self.at_top
            self._made_once[key] = make()
            self.block = block
        return self._made_once[key]

    def wrap(self, op: Operation) -> Value:
        """Return the only result of an operation as a value of this builder."""
        return Value(self, op.results[0])

    def poison(self, type_: Attribute) -> Value:
        """Return a value that must not be observed: something to insert lanes into."""
        return self.emit(values.PoisonOp, (), type_)

    def null(self) -> Value:
        """Return the null pointer."""
        return self.emit(ZeroOp, (), ptr)

    def splat(self, scalar: Value, lanes: int) -> Value:
        """Return a vector with the same scalar in all lanes."""
        if lanes == 1:
            return scalar
        type_ = vector(scalar.type, lanes)
        first = self.emit(InsertElementOp, (self.poison(type_), scalar, self.constant(0, i64)), type_)
        return self.shuffle(first, first, [0] * lanes)

    def shuffle(self, a: Value, b: Value, mask: Sequence[int]) -> Value:
        """Return the lanes that `mask` picks out of `a` followed by `b`; -1 leaves a lane open."""
        properties = {"mask": i32_array(*mask)}
        return self.emit(ShuffleVectorOp, (a, b), vector(a.info.element, len(mask)), properties)

    def as_value(self, value: Number, type_: Attribute) -> Value:
        """Return `value` as a value of `type_`: numbers become constants, scalars fill all lanes."""
        if not isinstance(value, Value):
            return self.constant(value, type_)
        if value.type is type_ or value.info.is_vector:
            return value
        wanted = type_info(type_)
        return self.splat(value, wanted.lanes) if wanted.is_vector else value

    def resolved(self, type_: Attribute) -> Attribute:
        """Return a type, with the integer as wide as a pointer in place of `index_type`."""
        return self.index_type if type_ is index_type else type_

    def _pair(self, a: Number, b: Number) -> tuple[Value, Value]:
        """Return both operands as values of one type; at least one is a value."""
        if isinstance(a, Value):
            if isinstance(b, Value):
                if a.type is b.type:
                    return a, b
                type_ = b.type if b.info.is_vector else a.type
                return self.as_value(a, type_), self.as_value(b, type_)
            return a, self.constant(b, a.type)
        assert isinstance(b, Value), "an operation of the builder needs at least one value"
        return self.constant(a, b.type), b


_Key = tuple[int, object]

_literals: dict[_Key, tuple[Attribute, Attribute]] = {}
"""Constant → its type, kept alive so that no other type gets its identity, and its attribute."""


def _key(value: float | Sequence[float], type_: Attribute) -> _Key:
    """Return the key of a constant: the identity of its type, and its numbers."""
    numbers = _key_of(value) if isinstance(value, (int, float)) else tuple([_key_of(lane) for lane in value])
    return id(type_), numbers


def _key_of(number: float) -> object:
    """Return the key of a number: -0.0 and 0.0 differ, and so do 1 and 1.0."""
    return number if isinstance(number, int) else struct.pack("d", number)


def _signed(bits: int, width: int) -> int:
    """Return the number that `width` bits mean when signed."""
    return bits - (1 << width) if width > 1 and bits >> (width - 1) else bits


def _prints_as_decimal(value: float, bits: int) -> bool:
    """Whether xDSL's printer writes this float in decimal; it uses hexadecimal where few digits are not exact."""
    if not math.isfinite(value):
        return False
    code = "<d" if bits == 64 else "<f"
    exact = struct.pack(code, float(f"{value:.5e}")) == struct.pack(code, value)
    return exact or "." in f"{value:.{17 if bits == 64 else 9}g}"


def _literal(value: float | Sequence[float], type_: Attribute) -> Attribute:
    """Return the attribute of a constant, which functions share."""
    key = _key(value, type_)
    known = _literals.get(key)
    if known is None:
        if len(_literals) >= MAX_KEPT:
            _literals.clear()
        known = _literals[key] = type_, _made_literal(value, type_)
    return known[1]


def _made_literal(value: float | Sequence[float], type_: Attribute) -> Attribute:
    info = type_info(type_)
    if info.is_vector:
        numbers = [value] * info.lanes if isinstance(value, (int, float)) else list(value)
        if info.is_float:
            type_ = cast("VectorType[AnyFloat]", type_)
            return DenseIntOrFPElementsAttr.from_list(type_, [float(n) for n in numbers])
        mask = (1 << info.bits) - 1
        type_ = cast("VectorType[IntegerType]", type_)
        return DenseIntOrFPElementsAttr.from_list(type_, [_signed(int(n) & mask, info.bits) for n in numbers])
    assert isinstance(value, (int, float)), "a scalar constant takes one number"
    if info.is_float:
        return FloatAttr(float(value), cast("AnyFloat", type_))
    return IntegerAttr(int(value), cast("IntegerType", type_), truncate_bits=True)

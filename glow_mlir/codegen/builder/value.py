"""A value of generated code that computes like a number of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.builder.types import TypeInfo, type_info

if TYPE_CHECKING:
    from glow_mlir.codegen.builder.builder import Builder


class Value:
    """
    An SSA value, its type, and the builder that operators add instructions to.

    Operators take another value of the same type, a scalar of the element type (it is spread over the lanes),
    or a Python number, which becomes a constant. `//`, `%` are for indices: they take both sides as unsigned.
    `<` and its kin compare floats in the ordered sense and integers as signed; equality is `eq` and `ne`,
    since `==` stays Python's own.
    """

    __slots__ = ("builder", "ssa", "type")

    def __init__(self, builder: Builder, ssa: SSAValue) -> None:
        self.builder = builder
        self.ssa = ssa
        self.type: Attribute = ssa.type

    def __repr__(self) -> str:
        return f"<value of type {self.type}>"

    @property
    def info(self) -> TypeInfo:
        """Element type, lanes and kind."""
        return type_info(self.type)

    @property
    def lanes(self) -> int:
        """How many lanes a vector has; 1 for a scalar."""
        return type_info(self.type).lanes

    def __add__(self, other: Number) -> Value:
        return self.builder.add(self, other)

    def __radd__(self, other: Number) -> Value:
        return self.builder.add(self, other)

    def __sub__(self, other: Number) -> Value:
        return self.builder.sub(self, other)

    def __rsub__(self, other: Number) -> Value:
        return self.builder.sub(other, self)

    def __mul__(self, other: Number) -> Value:
        return self.builder.mul(self, other)

    def __rmul__(self, other: Number) -> Value:
        return self.builder.mul(self, other)

    def __truediv__(self, other: Number) -> Value:
        return self.builder.fdiv(self, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self.builder.fdiv(other, self)

    def __floordiv__(self, other: Number) -> Value:
        return self.builder.udiv(self, other)

    def __rfloordiv__(self, other: Number) -> Value:
        return self.builder.udiv(other, self)

    def __mod__(self, other: Number) -> Value:
        return self.builder.urem(self, other)

    def __rmod__(self, other: Number) -> Value:
        return self.builder.urem(other, self)

    def __neg__(self) -> Value:
        return self.builder.neg(self)

    def __and__(self, other: Number) -> Value:
        return self.builder.and_(self, other)

    def __or__(self, other: Number) -> Value:
        return self.builder.or_(self, other)

    def __xor__(self, other: Number) -> Value:
        return self.builder.xor(self, other)

    def __invert__(self) -> Value:
        return self.builder.xor(self, -1)

    def __lshift__(self, other: Number) -> Value:
        return self.builder.shl(self, other)

    def __rshift__(self, other: Number) -> Value:
        return self.builder.ashr(self, other)

    def __lt__(self, other: Number) -> Value:
        return self.builder.compare("lt", self, other)

    def __le__(self, other: Number) -> Value:
        return self.builder.compare("le", self, other)

    def __gt__(self, other: Number) -> Value:
        return self.builder.compare("gt", self, other)

    def __ge__(self, other: Number) -> Value:
        return self.builder.compare("ge", self, other)

    def eq(self, other: Number) -> Value:
        """Return whether two values are equal, lane by lane."""
        return self.builder.compare("eq", self, other)

    def ne(self, other: Number) -> Value:
        """Return whether two values differ, lane by lane; NaN differs from everything."""
        return self.builder.compare("ne", self, other)

    def at(self, index: Number, element: Attribute) -> Value:
        """Return the address of element `index` of the array of `element` that this pointer points to."""
        return self.builder.offset(self, index, element)

    def load(self, type_: Attribute, align: int | None = None) -> Value:
        """Return what is in memory at this pointer; see `Builder.load`."""
        return self.builder.load(self, type_, align)

    def store(self, value: Number, align: int | None = None) -> None:
        """Write a value to memory at this pointer; see `Builder.store`."""
        self.builder.store(value, self, align)


Number = Value | int | float
Index = Value | int

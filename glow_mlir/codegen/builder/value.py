"""Values of generated code that compute like Python numbers, and the operators behind them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.builder.types import TypeInfo, info_of


class Operators(ABC):
    """The operators of values; each layer of the builder implements some of them."""

    @abstractmethod
    def add(self, a: Number, b: Number) -> Value:
        """Return `a + b`."""

    @abstractmethod
    def sub(self, a: Number, b: Number) -> Value:
        """Return `a - b`."""

    @abstractmethod
    def mul(self, a: Number, b: Number) -> Value:
        """Return `a * b`."""

    @abstractmethod
    def neg(self, a: Value) -> Value:
        """Return `-a`."""

    @abstractmethod
    def fdiv(self, a: Number, b: Number) -> Value:
        """Return the quotient of two floats."""

    @abstractmethod
    def udiv(self, a: Number, b: Number) -> Value:
        """Return the quotient of two unsigned integers."""

    @abstractmethod
    def urem(self, a: Number, b: Number) -> Value:
        """Return the remainder of two unsigned integers."""

    @abstractmethod
    def and_(self, a: Number, b: Number) -> Value:
        """Return the bitwise and."""

    @abstractmethod
    def or_(self, a: Number, b: Number) -> Value:
        """Return the bitwise or."""

    @abstractmethod
    def xor(self, a: Number, b: Number) -> Value:
        """Return the bitwise exclusive or."""

    @abstractmethod
    def shl(self, a: Number, b: Number) -> Value:
        """Return `a` shifted left."""

    @abstractmethod
    def ashr(self, a: Number, b: Number) -> Value:
        """Return `a` shifted right, filled with copies of the sign."""

    @abstractmethod
    def compare(self, predicate: str, a: Number, b: Number) -> Value:
        """
        Return the i1, or vector of i1, that says whether `a <predicate> b`.

        `predicate` is `lt`, `le`, `gt`, `ge`, `eq`, `ne` (signed, or ordered but for `ne`), or one of LLVM's
        own.
        """

    @abstractmethod
    def min(self, a: Number, b: Number) -> Value:
        """Return the smaller of two signed integers or floats; with a NaN, `b`. One instruction on x86."""

    @abstractmethod
    def max(self, a: Number, b: Number) -> Value:
        """Return the larger of two signed integers or floats; with a NaN, `b`. One instruction on x86."""

    @abstractmethod
    def offset(self, pointer: Value, index: Number, element: Attribute) -> Value:
        """Return the address of element `index` of an array of `element` at `pointer`; bools are bytes."""

    @abstractmethod
    def load(self, pointer: Value, type_: Attribute, align: int | None = None) -> Value:
        """Return the scalar or vector in memory at `pointer`; `align` in bytes, one element by default."""

    @abstractmethod
    def store(self, value: Number, pointer: Value, align: int | None = None) -> None:
        """Write a value to memory at `pointer`; `align` as for `load`."""


class Value:
    """
    An SSA value, its type, and the operators of its function.

    Operators take another value of the same type, a scalar of the element type (broadcast to all lanes),
    or a Python number, which becomes a constant. `//` and `%` are for indices: both sides are unsigned.
    `<` and the like compare floats as ordered and integers as signed; equality is `eq` and `ne`,
    since `==` stays Python's own.
    """

    __slots__ = ("info", "operators", "ssa", "type")

    def __init__(self, operators: Operators, ssa: SSAValue) -> None:
        self.operators = operators
        self.ssa = ssa
        self.type: Attribute = ssa.type
        if (info := info_of(self.type)) is not None:
            self.info: TypeInfo = info
            """Element type, lanes and kind; aggregates have none."""

    def __repr__(self) -> str:
        return f"<value of type {self.type}>"

    @property
    def lanes(self) -> int:
        """The number of lanes of a vector; 1 for a scalar."""
        return self.info.lanes

    def __add__(self, other: Number) -> Value:
        return self.operators.add(self, other)

    def __radd__(self, other: Number) -> Value:
        return self.operators.add(self, other)

    def __sub__(self, other: Number) -> Value:
        return self.operators.sub(self, other)

    def __rsub__(self, other: Number) -> Value:
        return self.operators.sub(other, self)

    def __mul__(self, other: Number) -> Value:
        return self.operators.mul(self, other)

    def __rmul__(self, other: Number) -> Value:
        return self.operators.mul(self, other)

    def __truediv__(self, other: Number) -> Value:
        return self.operators.fdiv(self, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self.operators.fdiv(other, self)

    def __floordiv__(self, other: Number) -> Value:
        return self.operators.udiv(self, other)

    def __rfloordiv__(self, other: Number) -> Value:
        return self.operators.udiv(other, self)

    def __mod__(self, other: Number) -> Value:
        return self.operators.urem(self, other)

    def __rmod__(self, other: Number) -> Value:
        return self.operators.urem(other, self)

    def __neg__(self) -> Value:
        return self.operators.neg(self)

    def __and__(self, other: Number) -> Value:
        return self.operators.and_(self, other)

    def __or__(self, other: Number) -> Value:
        return self.operators.or_(self, other)

    def __xor__(self, other: Number) -> Value:
        return self.operators.xor(self, other)

    def __invert__(self) -> Value:
        return self.operators.xor(self, -1)

    def __lshift__(self, other: Number) -> Value:
        return self.operators.shl(self, other)

    def __rshift__(self, other: Number) -> Value:
        return self.operators.ashr(self, other)

    def __lt__(self, other: Number) -> Value:
        return self.operators.compare("lt", self, other)

    def __le__(self, other: Number) -> Value:
        return self.operators.compare("le", self, other)

    def __gt__(self, other: Number) -> Value:
        return self.operators.compare("gt", self, other)

    def __ge__(self, other: Number) -> Value:
        return self.operators.compare("ge", self, other)

    def eq(self, other: Number) -> Value:
        """Return whether two values are equal, lane by lane."""
        return self.operators.compare("eq", self, other)

    def ne(self, other: Number) -> Value:
        """Return whether two values differ, lane by lane; NaN differs from everything."""
        return self.operators.compare("ne", self, other)

    def at(self, index: Number, element: Attribute) -> Value:
        """Return the address of element `index` of the array of `element` that this pointer points to."""
        return self.operators.offset(self, index, element)

    def load(self, type_: Attribute, align: int | None = None) -> Value:
        """Return the scalar or vector in memory at this pointer; see `Operators.load`."""
        return self.operators.load(self, type_, align)

    def store(self, value: Number, align: int | None = None) -> None:
        """Write a value to memory at this pointer; see `Operators.store`."""
        self.operators.store(value, self, align)


Number = Value | int | float
Index = Value | int

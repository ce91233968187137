"""
Formulas as patterns: `0.5 * X * (1 + erf(X / sqrt(2)))` matches that computation in a graph, however it is written.

Products and sums are compared in a normal form: a number times powers of values, a number plus values. The order and
grouping of operands make no difference, nor do `x / c` or `x * (1 / c)`, `x * x` or `pow(x, 2)`, and `1 / sqrt(x)`,
`reciprocal(sqrt(x))` or `pow(x, -0.5)`.
"""

from __future__ import annotations

from xdsl.ir import Operation

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.support.dataclass import dataclass

Needed = frozenset[type[Operation]]
"""Alternatives: a match needs at least one of these operators."""

ROOTS: Needed = frozenset((math.SqrtOp, binary.PowOp))
"""Operators that compute roots."""


class Formula:
    """A pattern that matches a value. Python arithmetic on formulas and numbers builds larger formulas."""

    def roots(self) -> tuple[type[Operation], ...]:
        """The types of the operators whose result the formula may match."""
        return ()

    def needs(self) -> tuple[Needed, ...]:
        """Sets of operators: a graph in which the formula matches has one operator of each set."""
        return ()

    def __mul__(self, other: Formula | float) -> Product:
        return _product(self, other, 1)

    def __rmul__(self, other: float) -> Product:
        return _product(self, other, 1)

    def __truediv__(self, other: Formula | float) -> Product:
        return _product(self, other, -1)

    def __rtruediv__(self, other: float) -> Product:
        return _product(_as_product(other), self, -1)

    def __pow__(self, exponent: float) -> Product:
        return Product(1.0, tuple((factor, power * exponent) for factor, power in _as_product(self).factors))

    def __add__(self, other: Formula | float) -> Sum:
        return _sum(self, other, 1)

    def __radd__(self, other: float) -> Sum:
        return _sum(self, other, 1)

    def __sub__(self, other: Formula | float) -> Sum:
        return _sum(self, other, -1)


@dataclass(frozen=True)
class Variable(Formula):
    """Any value; all occurrences of one variable in a formula match the same value."""

    name: str


@dataclass(frozen=True)
class Number(Formula):
    """Any constant number: a factor of a product, an addend of a sum, or an operand."""

    name: str


@dataclass(frozen=True)
class Constant(Formula):
    """An operand equal to this number."""

    value: float


@dataclass(frozen=True)
class Shared(Formula):
    """A match of `formula`; further occurrences of the name match the same value."""

    name: str
    formula: Formula

    def roots(self) -> tuple[type[Operation], ...]:
        return self.formula.roots()

    def needs(self) -> tuple[Needed, ...]:
        return self.formula.needs()


@dataclass(frozen=True)
class Apply(Formula):
    """
    An operator applied to operands, with the given property values.

    Operands of commutative operators match in either order; sums and products have formulas of their own.
    """

    operator: type[HighOp]
    operands: tuple[Formula, ...]
    properties: tuple[tuple[str, AttributeValue], ...] = ()

    def roots(self) -> tuple[type[Operation], ...]:
        return (self.operator,)

    def needs(self) -> tuple[Needed, ...]:
        return (frozenset((self.operator,)), *(need for operand in self.operands for need in operand.needs()))


@dataclass(frozen=True)
class Reduced(Formula):
    """A reduction that keeps its axes; all reductions of one formula share the axes, which the match records."""

    operator: type[HighOp]
    operand: Formula

    def roots(self) -> tuple[type[Operation], ...]:
        return (self.operator,)

    def needs(self) -> tuple[Needed, ...]:
        return (frozenset((self.operator,)), *self.operand.needs())


@dataclass(frozen=True)
class Product(Formula):
    """A number times powers of formulas."""

    number: float | Number
    factors: tuple[tuple[Formula, float], ...]

    def roots(self) -> tuple[type[Operation], ...]:
        if len(self.factors) > 1:
            return (binary.MulOp, binary.DivOp)
        return (binary.MulOp, binary.DivOp, math.NegOp, math.ReciprocalOp, binary.PowOp, math.SqrtOp)

    def needs(self) -> tuple[Needed, ...]:
        extracts = any(power % 1 for _, power in self.factors)
        return (*((ROOTS,) if extracts else ()), *(need for factor, _ in self.factors for need in factor.needs()))


@dataclass(frozen=True)
class Sum(Formula):
    """A number plus formulas; a subtracted formula is a product with -1."""

    number: float | Number
    terms: tuple[Formula, ...]

    def roots(self) -> tuple[type[Operation], ...]:
        return (binary.AddOp, binary.SubOp)

    def needs(self) -> tuple[Needed, ...]:
        return tuple(need for term in self.terms for need in term.needs())


def _as_product(item: Formula | float) -> Product:
    if isinstance(item, Product):
        return item
    if isinstance(item, Number):
        return Product(item, ())
    return Product(1.0, ((item, 1.0),)) if isinstance(item, Formula) else Product(float(item), ())


def _product(left: Formula | float, right: Formula | float, sign: int) -> Product:
    """left · right, or left / right where `sign` is -1."""
    one, other = _as_product(left), _as_product(right)
    number: float | Number
    if isinstance(one.number, Number) or isinstance(other.number, Number):
        number = one.number if isinstance(one.number, Number) else other.number
    else:
        number = one.number * other.number**sign
    return Product(number, one.factors + tuple((factor, power * sign) for factor, power in other.factors))


def _as_sum(item: Formula | float) -> Sum:
    if isinstance(item, Sum):
        return item
    if isinstance(item, Number):
        return Sum(item, ())
    return Sum(0.0, (item,)) if isinstance(item, Formula) else Sum(float(item), ())


def _sum(left: Formula | float, right: Formula | float, sign: int) -> Sum:
    """left + right, or left - right where `sign` is -1."""
    one, other = _as_sum(left), _as_sum(right)
    number: float | Number
    if isinstance(one.number, Number) or isinstance(other.number, Number):
        number = one.number if isinstance(one.number, Number) else other.number
    else:
        number = one.number + sign * other.number
    return Sum(number, one.terms + tuple(term if sign > 0 else term * -1.0 for term in other.terms))

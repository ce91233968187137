"""Matcher of formulas: binds variables to values and numbers of a graph."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Commutative

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import is_float, numpy_dtype
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import GetOp, SplatOp
from glow_mlir.dialects.properties import flag, number
from glow_mlir.dialects.shapes import Shape, element_of, has_one_element
from glow_mlir.rewriting.formulas import (
    Apply,
    Constant,
    Formula,
    Number,
    Product,
    Reduced,
    Shared,
    Sum,
    Variable,
)
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import float_limits

MAX_PARTS = 6
"""Maximum number of factors or terms of a formula, which ends the search in long chains."""

MAX_LEVELS = 8
"""Maximum number of times that members of a product or sum are expanded, which bounds the search."""

ROUNDINGS = 4
"""Tolerance in units in the last place for a number of a formula: it may be the product of several."""


@dataclass(frozen=True)
class Match:
    """A partial match of a formula."""

    values: Mapping[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    axes: Shape | None = None
    """The axes of the reductions, counted from the front."""
    ops: tuple[Operation, ...] = ()
    """The operators that the formula covers, root first."""

    def covering(self, *ops: Operation) -> Match:
        """Extend this match by further operators."""
        return replace(self, ops=(*self.ops, *ops))

    def is_alone(self) -> bool:
        """Whether only the root's result is used outside the match: other operators would be computed twice."""
        covered = set(self.ops)
        inner = (result for op in self.ops[1:] for result in op.results)
        return all(use.operation in covered for result in inner for use in result.uses)


@dataclass(frozen=True)
class Parts:
    """A value in normal form: `number` times powers, or plus multiples, of the keys of `weights`."""

    number: float
    weights: Mapping[SSAValue, float]
    """Factor → its power, or term → its coefficient."""
    ops: tuple[Operation, ...] = ()


Split = Callable[[Operation, "Matcher"], "list[tuple[SSAValue, float]] | None"]


def _exponent(op: Operation, matcher: Matcher) -> list[tuple[SSAValue, float]] | None:
    power = matcher.number_of(op.operands[1])
    return None if power is None else [(op.operands[0], power)]


FACTORS: dict[type[Operation], Split] = {
    binary.MulOp: lambda op, _: [(op.operands[0], 1.0), (op.operands[1], 1.0)],
    binary.DivOp: lambda op, _: [(op.operands[0], 1.0), (op.operands[1], -1.0)],
    binary.PowOp: _exponent,
    math.NegOp: lambda op, _: [(op.operands[0], 1.0)],
    math.ReciprocalOp: lambda op, _: [(op.operands[0], -1.0)],
    math.SqrtOp: lambda op, _: [(op.operands[0], 0.5)],
}
"""Operator → its factors and their powers; a negation also is a factor of -1."""

TERMS: dict[type[Operation], Split] = {
    binary.AddOp: lambda op, _: [(op.operands[0], 1.0), (op.operands[1], 1.0)],
    binary.SubOp: lambda op, _: [(op.operands[0], 1.0), (op.operands[1], -1.0)],
}
"""Operator → its terms and their signs."""


class Matcher:
    """Matches formulas in the functions of one module."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def find(self, formula: Formula, root: Operation) -> Match | None:
        """The first match of `formula` with the result of `root` that duplicates no computation."""
        for match in self.matches(formula, root.results[0], Match()):
            if match.ops and match.ops[0] is root and match.is_alone():
                return match
        return None

    def number_of(self, value: SSAValue) -> float | None:
        """The number of a one-element constant or of a splat."""
        owner = value.owner
        if isinstance(owner, SplatOp):
            return float(number(owner.value))
        if isinstance(owner, GetOp) and has_one_element(value):
            array = self.storage.value_of(value)
            return None if array is None else float(array.reshape(-1)[0])
        return None

    def matches(self, formula: Formula, value: SSAValue, match: Match) -> Iterator[Match]:
        """All matches of `formula` with `value` that extend `match`."""
        if isinstance(formula, Product):
            yield from self._products(formula, value, 1.0, match)
        elif isinstance(formula, Sum):
            yield from self._sums(formula, value, match)
        elif isinstance(formula, Variable):
            yield from _bound(match, formula.name, value)
        elif isinstance(formula, Number | Constant):
            found = self.number_of(value)
            if found is not None:
                yield from numbers_match(formula, found, value, match)
        elif isinstance(formula, Shared):
            yield from self._shared(formula, value, match)
        elif isinstance(formula, Reduced):
            yield from self._reduced(formula, value, match)
        elif isinstance(formula, Apply):
            yield from self._applied(formula, value, match)

    def _shared(self, formula: Shared, value: SSAValue, match: Match) -> Iterator[Match]:
        if formula.name in match.values:
            yield from _bound(match, formula.name, value)
            return
        for found in self.matches(formula.formula, value, match):
            yield from _bound(found, formula.name, value)

    def _reduced(self, formula: Reduced, value: SSAValue, match: Match) -> Iterator[Match]:
        op = value.owner
        if not isinstance(op, formula.operator) or not flag(op.properties["keepdims"]):
            return
        axes: Shape = getattr(op, "reduced_axes")()
        if match.axes in (None, axes):
            yield from self.matches(formula.operand, op.operands[0], replace(match, axes=axes).covering(op))

    def _applied(self, formula: Apply, value: SSAValue, match: Match) -> Iterator[Match]:
        op = value.owner
        if not isinstance(op, formula.operator) or len(op.operands) != len(formula.operands):
            return
        wide = element_of(value) == f64
        if any(op.properties.get(name) != to_attribute(wanted, wide) for name, wanted in formula.properties):
            return
        orders = [tuple(op.operands)]
        if formula.operator.has_trait(Commutative):
            orders.append(orders[0][::-1])
        for operands in orders:
            yield from self._each(list(zip(formula.operands, operands, strict=True)), match.covering(op))

    def _each(self, pairs: list[tuple[Formula, SSAValue]], match: Match) -> Iterator[Match]:
        if not pairs:
            yield match
            return
        for found in self.matches(*pairs[0], match):
            yield from self._each(pairs[1:], found)

    def _products(self, formula: Product, value: SSAValue, scale: float, match: Match) -> Iterator[Match]:
        for parts in self._expansions(value, FACTORS, Parts(scale, {value: 1.0})):
            if len(parts.weights) != len(formula.factors):
                continue
            for found in numbers_match(formula.number, parts.number, value, match.covering(*parts.ops)):
                yield from self._factors(formula.factors, parts.weights, found)

    def _factors(
        self, factors: tuple[tuple[Formula, float], ...], powers: Mapping[SSAValue, float], match: Match
    ) -> Iterator[Match]:
        if not factors:
            yield match
            return
        factor, power = factors[0]
        for value, found in powers.items():
            if found != power:
                continue
            rest = {other: exponent for other, exponent in powers.items() if other is not value}
            for step in self.matches(factor, value, match):
                yield from self._factors(factors[1:], rest, step)

    def _sums(self, formula: Sum, value: SSAValue, match: Match) -> Iterator[Match]:
        for parts in self._expansions(value, TERMS, Parts(0.0, {value: 1.0})):
            if not parts.ops or len(parts.weights) != len(formula.terms):
                continue
            for found in numbers_match(formula.number, parts.number, value, match.covering(*parts.ops)):
                yield from self._terms(formula.terms, parts.weights, found)

    def _terms(
        self, terms: tuple[Formula, ...], coefficients: Mapping[SSAValue, float], match: Match
    ) -> Iterator[Match]:
        if not terms:
            yield match
            return
        for value, coefficient in coefficients.items():
            rest = {other: weight for other, weight in coefficients.items() if other is not value}
            for step in self._multiple(terms[0], value, coefficient, match):
                yield from self._terms(terms[1:], rest, step)

    def _multiple(self, formula: Formula, value: SSAValue, coefficient: float, match: Match) -> Iterator[Match]:
        if isinstance(formula, Product):
            yield from self._products(formula, value, coefficient, match)
        elif coefficient == 1.0:
            yield from self.matches(formula, value, match)

    def _expansions(self, value: SSAValue, splits: dict[type[Operation], Split], parts: Parts) -> Iterator[Parts]:
        """`parts`, and its successive expansions as members are split."""
        for _ in range(MAX_LEVELS):
            if len(parts.weights) > MAX_PARTS:
                return
            yield parts
            grown = self._split(parts, splits, value)
            if grown is None:
                return
            parts = grown

    def _split(self, parts: Parts, splits: dict[type[Operation], Split], root: SSAValue) -> Parts | None:
        """Split each member of `parts` once; `None` if none can be split."""
        total, ops = parts.number, list(parts.ops)
        weights: dict[SSAValue, float] = {}
        for value, weight in parts.weights.items():
            members = self._members(value, weight, splits, root)
            if members is None:
                members = [(value, 1.0)]
            else:
                ops.append(value.owner)  # pyright: ignore[reportArgumentType]
                total *= -1.0 if isinstance(value.owner, math.NegOp) and weight % 2 else 1.0
            for member, share in members:
                known = self.number_of(member)
                if known is None:
                    weights[member] = weights.get(member, 0.0) + weight * share
                else:
                    total = _combined(total, known, weight * share, splits)
        if len(ops) == len(parts.ops) or not python_math.isfinite(total):
            return None
        return Parts(total, {value: weight for value, weight in weights.items() if weight}, tuple(ops))

    def _members(
        self, value: SSAValue, weight: float, splits: dict[type[Operation], Split], root: SSAValue
    ) -> list[tuple[SSAValue, float]] | None:
        """The factors or terms of a member without other readers; roots in products stay, since (x²)^½ is |x|."""
        split = splits.get(type(value.owner)) if isinstance(value.owner, HighOp) else None
        if split is None or (value is not root and not value.has_one_use()) or weight % 1:
            return None
        assert isinstance(value.owner, Operation)
        return split(value.owner, self)


def _combined(total: float, known: float, weight: float, splits: dict[type[Operation], Split]) -> float:
    """Combine the number of a normal form with another constant."""
    if splits is TERMS:
        return total + weight * known
    if (known == 0 and weight < 0) or (known < 0 and weight % 1):
        return python_math.nan
    try:
        return total * known**weight
    except OverflowError:
        return python_math.inf


def _bound(match: Match, name: str, value: SSAValue) -> Iterator[Match]:
    known = match.values.get(name)
    if known is None:
        yield replace(match, values={**match.values, name: value})
    elif known is value:
        yield match


def numbers_match(formula: Formula | float, found: float, value: SSAValue, match: Match) -> Iterator[Match]:
    """Extend `match` if `found`, in the element type of `value`, equals the number of `formula` or binds it."""
    if isinstance(formula, Number):
        known = match.numbers.get(formula.name)
        if known is None:
            yield replace(match, numbers={**match.numbers, formula.name: found})
            return
        wanted = known
    else:
        wanted = formula.value if isinstance(formula, Constant) else formula
        assert isinstance(wanted, float | int)
    if close(found, wanted, value):
        yield match


def close(found: float, wanted: float, value: SSAValue) -> bool:
    """Whether two numbers are equal up to a few roundings in the element type of `value`."""
    element = element_of(value)
    if not is_float(element):
        return found == wanted
    step, _, _ = float_limits(numpy_dtype(element))
    return abs(found - wanted) <= ROUNDINGS * step * abs(wanted)

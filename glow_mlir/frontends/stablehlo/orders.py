"""What the comparator of a sort orders by: keys, one after the other."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from glow_mlir.frontends.stablehlo.regions import Computation, Expression, argument, computation, operation
from glow_mlir.support.dataclass import dataclass

_NAN, _ZERO = Expression("constant nan"), Expression("constant 0.0")


@dataclass(frozen=True)
class Key:
    """A number of each element by which elements are ordered."""

    operand: int
    """The number of the operand of the sort that it depends on."""
    value: SSAValue
    """The value in the comparator of the key of the first of two elements."""
    is_element: bool
    """Whether the order is that of the operand itself as numbers, where NaN is the largest and all zeros are equal."""
    descending: bool
    total: bool
    """Whether floats are in their total order."""


def keys_of(block: Block) -> list[Key] | None:
    """The keys of a comparator, the most important one first; `None` for one that does not compare keys."""
    found = computation(block)
    return None if found is None or len(found.results) != 1 else _keys(found, found.results[0])


def _keys(found: Computation, expression: Expression) -> list[Key] | None:
    """The keys of `x < y`, or of `x < y or x = y and …`."""
    first = _key(found, expression)
    if first is not None:
        return [first]
    for less, equal, rest in _parts(expression):
        first, others = _key(found, less), _keys(found, rest)
        if first is not None and others is not None and _compares(less, equal):
            return [first, *others]
    return None


def _parts(expression: Expression) -> list[tuple[Expression, Expression, Expression]]:
    """The ways to read an expression as `less or equal and rest`."""
    if expression.word == "select":
        equal, rest, less = expression.operands
        return [(less, equal, rest)]
    if expression.word != "or":
        return []
    found: list[tuple[Expression, Expression, Expression]] = []
    for less, both in (expression.operands, expression.operands[::-1]):
        if both.word == "and":
            found += [(less, equal, rest) for equal, rest in (both.operands, both.operands[::-1])]
    return found


def _compares(less: Expression, equal: Expression) -> bool:
    """Whether an expression is the equality of what another one compares."""
    words = less.word.split()
    return equal == operation(" ".join(["compare", "EQ", *words[2:]]), *less.operands)


def _key(found: Computation, expression: Expression) -> Key | None:
    """The key of a comparison of the same function of two elements."""
    words = expression.word.split()
    if words[0] != "compare" or words[1] not in ("LT", "GT"):
        return None
    one, other = expression.operands
    numbers = one.arguments()
    if len(numbers) != 1 or len(other.arguments()) != 1:
        return None
    (number,), descending = numbers, words[1] == "GT"
    pair = number ^ 1
    if one.renumbered({number: pair}) != other:
        return None
    if number % 2:  # The second element is compared with the first.
        one, descending = other, not descending
    element, total = argument(number & ~1), "TOTALORDER" in words
    is_element = one == element if not total else one == _canonical(element)
    return Key(number // 2, found.value(one), is_element, descending, total)


def _canonical(x: Expression) -> Expression:
    """A float with one NaN and one zero, as JAX writes it."""
    is_zero, is_nan = operation("compare EQ FLOAT", x, _ZERO), operation("compare NE FLOAT", x, x)
    return operation("select", is_nan, _NAN, operation("select", is_zero, _ZERO, x))

"""What the regions of folds, sorts and scatters compute, as expressions that can be compared."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.support.dataclass import dataclass

MAX_NODES = 4096
"""The largest size of an expression; a region with a larger one is none that is recognized."""


@dataclass(frozen=True)
class Expression:
    """
    An operation on expressions; equal ones are the same computation.

    `word` is the name of the operation, with the direction and the kind of a comparison; an argument of the region is
    `argument` and its number, a constant is `constant` and its value.
    """

    word: str
    operands: tuple[Expression, ...] = ()
    number: int = 0
    value: SSAValue | None = None
    """A value from outside of the region that is no constant."""
    size: int = 1
    """The number of operations, those that it names twice counted twice."""

    def __str__(self) -> str:
        """The expression as a text that orders the operands of sums."""
        return f"{self.word}{self.number}({', '.join(map(str, self.operands))}){id(self.value)}"

    def arguments(self) -> frozenset[int]:
        """The numbers of the arguments of the region that it depends on."""
        if self.word == "argument":
            return frozenset([self.number])
        return frozenset[int]().union(*(operand.arguments() for operand in self.operands))

    def renumbered(self, numbers: Mapping[int, int]) -> Expression:
        """The same expression of other arguments."""
        if self.word == "argument":
            return argument(numbers[self.number])
        return operation(self.word, *(operand.renumbered(numbers) for operand in self.operands), value=self.value)


def argument(number: int) -> Expression:
    """An argument of a region."""
    return Expression("argument", number=number)


def operation(word: str, *operands: Expression, value: SSAValue | None = None) -> Expression:
    """An operation on expressions; operands of one whose order does not matter are put in order."""
    if word in _COMMUTATIVE:
        operands = tuple(sorted(operands, key=str))
    return Expression(word, operands, value=value, size=1 + sum(operand.size for operand in operands))


_COMMUTATIVE = frozenset("add multiply maximum minimum and or xor".split()) | {
    f"compare {direction}{kind}" for direction in ("EQ", "NE") for kind in ("", " FLOAT", " TOTALORDER")
}


@dataclass(frozen=True)
class Computation:
    """What a region computes: the expression of each of its values, and of its results."""

    known: Mapping[SSAValue, Expression]
    results: tuple[Expression, ...]

    def value(self, expression: Expression) -> SSAValue:
        """A value of the region with this expression."""
        return next(value for value, found in self.known.items() if found == expression)


def computation(block: Block) -> Computation | None:
    """What a region computes; `None` for one with regions of its own, and for a very large one."""
    known: dict[SSAValue, Expression] = {value: argument(number) for number, value in enumerate(block.args)}
    for op in block.ops:
        if op is block.last_op:
            return Computation(known, tuple(_of_value(value, known) for value in op.operands))
        if op.regions or len(op.results) != 1:
            return None
        found = _of_constant(op) or operation(_word(op), *(_of_value(value, known) for value in op.operands))
        if found.size > MAX_NODES:
            return None
        known[op.results[0]] = found
    return None


def _of_value(value: SSAValue, known: Mapping[SSAValue, Expression]) -> Expression:
    """The expression of an operand, which may be a value from outside."""
    if value in known:
        return known[value]
    op = value.owner
    constant = _of_constant(op) if isinstance(op, Operation) else None
    return constant or Expression("outside", value=value)


def _of_constant(op: Operation) -> Expression | None:
    """The expression of a constant of equal elements."""
    value = op.properties.get("value")
    if op.name not in ("stablehlo.constant", "chlo.constant") or not isinstance(value, DenseIntOrFPElementsAttr):
        return None
    return Expression(f"constant {value.get_values()[0]}") if value.is_splat() else None


def _word(op: Operation) -> str:
    """The name of an operation without its dialect, with the type of a conversion, or what a comparison compares."""
    name = op.name.removeprefix("stablehlo.")
    if name in _CONVERSIONS:
        name += f" {op.results[0].type}"
    if name != "compare":
        properties = "".join(f" {key} {value}" for key, value in sorted(op.properties.items()))
        return name + (properties if name not in _PLAIN else "")
    direction, kind = (getattr(op.properties.get(key), "data", "") for key in ("comparison_direction", "compare_type"))
    return f"compare {direction}" + (f" {kind}" if kind in ("FLOAT", "TOTALORDER") else "")


_CONVERSIONS = frozenset({"bitcast_convert", "convert"})
"""The operations whose results are of a type that their operands do not tell."""

_PLAIN = frozenset({"exponential", "log", "log_plus_one", "tanh", "rsqrt", "sqrt"})
"""The operations whose properties say how accurate they are to be."""

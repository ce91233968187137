"""Values of symbolic expressions in a call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.torch.graph_signature import symbol_axes
from glow_mlir.frontends.torch.sizes import spelled
from glow_mlir.frontends.torch.traced_graph import SYMBOLS, Expression, TracedGraph, TracedTensor, TracedValue

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda one, other: one + other,
    "mul": lambda one, other: one * other,
    "floordiv": lambda one, other: one // other,
    "mod": lambda one, other: one % other,
    "max": max,
    "min": min,
    "IntTrueDiv": lambda one, other: one / other,
    "FloatTrueDiv": lambda one, other: one / other,
    "TrueDiv": lambda one, other: one / other,
    "Equality": lambda one, other: one == other,
    "Unequality": lambda one, other: one != other,
    "GreaterThan": lambda one, other: one >= other,
    "StrictGreaterThan": lambda one, other: one > other,
    "LessThan": lambda one, other: one <= other,
    "StrictLessThan": lambda one, other: one < other,
    "And": lambda one, other: one and other,
    "Or": lambda one, other: one or other,
    "PowByNatural": lambda one, other: one**other,
    "Pow": lambda one, other: one**other,
    "FloatPow": lambda one, other: one**other,
    "RoundDecimal": round,
    "ExprCondPair": lambda one, other: (one, other),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Not": lambda one: not one,
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "RoundToInt": round,
    "Identity": lambda one: one,
    "ToFloat": float,
    "TruncToFloat": lambda one: float(math.trunc(one)),
    "TruncToInt": math.trunc,
    **{
        f"OpaqueUnaryFn_{name}": getattr(math, name)
        for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "exp", "log", "log2")
    },
}


ONE = Expression("number", value=1)


def evaluated(expression: Any, numbers: Mapping[str, Any]) -> Any:
    """The value of an expression for given symbols; raises `UnsupportedError` for an unknown operation."""
    if not isinstance(expression, Expression):
        return expression
    if expression.word in ("number", "float"):
        return expression.value
    if expression.word in SYMBOLS:
        return numbers[str(expression.value)]
    parts = [evaluated(part, numbers) for part in expression.parts]
    if expression.word == "Piecewise":
        return next(value for value, holds in parts if holds)
    if expression.word in OPERATIONS and parts:
        return reduce(OPERATIONS[expression.word], parts)
    if expression.word in FUNCTIONS and len(parts) == 1:
        return FUNCTIONS[expression.word](parts[0])
    raise UnsupportedError(f"the number {spelled(expression)} is not supported")


def truth_symbol(item: Expression) -> str | None:
    """The symbol that an expression says to be 1, as PyTorch writes truth values, or truth values as numbers."""
    if item.word == "Piecewise" and item.parts[0].parts[0] == ONE:
        item = item.parts[0].parts[1]
    if item.word == "Equality" and item.parts[0].word == "symbol" and item.parts[1] == ONE:
        return str(item.parts[0].value)
    return None


class SymbolReader:
    """Find the values of a graph's symbols in a call, from given numbers and shapes."""

    def __init__(self, graph: TracedGraph) -> None:
        self._numbers: dict[str, int] = {}
        self._axes: dict[str, tuple[int, int]] = {}
        for symbol, position, axis in symbol_axes(graph):
            self._axes.setdefault(symbol, (position, axis))
        for position, item in enumerate(graph.inputs):
            if not isinstance(item.value, Expression):
                continue
            if item.value.word in SYMBOLS:
                self._numbers[str(item.value.value)] = position
            elif (symbol := truth_symbol(item.value)) is not None and graph.symbols.get(symbol) == (0, 1):
                self._numbers.setdefault(symbol, position)
        self._derived = graph.derived

    def of(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Symbol → its value for these inputs."""
        found: dict[str, Any] = {name: inputs[position].shape[axis] for name, (position, axis) in self._axes.items()}
        given = {name: inputs[position] for name, position in self._numbers.items()}
        found |= {name: int(value) if isinstance(value, bool) else value for name, value in given.items()}
        if self._derived:
            self.derive(found)
        return found

    def derive(self, numbers: dict[str, Any]) -> None:
        """Add the derived symbols whose values are known by now."""
        for name, item in self._derived.items():
            if name not in numbers and item.symbols <= numbers.keys():
                numbers[name] = evaluated(item, numbers)


def symbols_in(traced: TracedValue, value: Any) -> dict[str, Any]:
    """The symbols that the value of a result determines."""
    if isinstance(traced, Expression):
        if (symbol := truth_symbol(traced)) is not None:
            return {symbol: int(value)}
        return {str(traced.value): value} if traced.word in SYMBOLS else {}
    if not isinstance(traced, TracedTensor):
        return {}
    sizes = zip(traced.sizes, value.shape, strict=True)
    return {str(size.value): there for size, there in sizes if isinstance(size, Expression) and size.word == "symbol"}

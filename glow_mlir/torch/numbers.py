"""Values of symbolic expressions in a call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.torch.graph_signature import symbol_axes
from glow_mlir.frontends.torch.sizes import spelled
from glow_mlir.frontends.torch.traced_graph import Expression, TracedGraph

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
}
FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "Not": lambda one: not one,
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "RoundToInt": round,
    "ToFloat": float,
    "TruncToInt": math.trunc,
    "Float": float,
}


def evaluated(expression: Any, numbers: Mapping[str, int]) -> Any:
    """The value of an expression for given symbols; raises `UnsupportedError` for an unknown operation."""
    if not isinstance(expression, Expression):
        return expression
    if expression.word == "number":
        return expression.value
    if expression.word == "symbol":
        return numbers[str(expression.value)]
    parts = [evaluated(part, numbers) for part in expression.parts]
    if expression.word in OPERATIONS and parts:
        return reduce(OPERATIONS[expression.word], parts)
    if expression.word in FUNCTIONS and len(parts) == 1:
        return FUNCTIONS[expression.word](parts[0])
    raise UnsupportedError(f"the number {spelled(expression)} is not supported")


class SymbolReader:
    """Find the values of a graph's symbols in a call, from given numbers and shapes."""

    def __init__(self, graph: TracedGraph) -> None:
        self._numbers: dict[str, int] = {}
        self._axes: dict[str, tuple[int, int]] = {}
        for symbol, position, axis in symbol_axes(graph):
            self._axes.setdefault(symbol, (position, axis))
        for position, item in enumerate(graph.inputs):
            if isinstance(item.value, Expression) and item.value.word == "symbol":
                self._numbers[str(item.value.value)] = position

    def of(self, inputs: Sequence[Any]) -> dict[str, int]:
        """Symbol → its value for these inputs."""
        found = {name: inputs[position].shape[axis] for name, (position, axis) in self._axes.items()}
        return found | {name: int(inputs[position]) for name, position in self._numbers.items()}

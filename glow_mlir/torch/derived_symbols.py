"""
Symbols for numbers that are not sizes in our sense, such as `TruncToInt(1.5 * s0)`.

Python computes their values in each call; compiled code sees further free sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.torch.sizes import size_of_expression
from glow_mlir.frontends.torch.traced_graph import Expression, TracedGraph, TracedInput, TracedNode, TracedTensor
from glow_mlir.support.symbols import Symbol, SymbolicSize

SIZES = frozenset(("add", "mul", "floordiv", "mod", "max", "min"))
"""Operations on whole numbers that give whole numbers."""

ROUNDINGS = frozenset(("CeilToInt", "FloorToInt", "RoundToInt", "TruncToInt"))
"""Operations that convert a float to a whole number."""


def with_derived_symbols(graph: TracedGraph) -> TracedGraph:
    """A graph in which symbols stand for all whole numbers that are not sizes."""
    if not graph.symbols:
        return graph
    return _Derivation(graph).run()


class _Derivation:
    """The state of a derivation."""

    def __init__(self, graph: TracedGraph) -> None:
        self._graph = graph
        self._symbols: dict[str, Any] = {name: _symbol(name) for name in graph.symbols}
        self._names: dict[Expression, str] = {}

    def run(self) -> TracedGraph:
        inputs = tuple(TracedInput(item.name, self._replaced(item.value)) for item in self._graph.inputs)
        nodes = tuple(map(self._node, self._graph.nodes))
        outputs = tuple(map(self._replaced, self._graph.outputs))
        derived: Mapping[str, Expression] = {name: item for item, name in self._names.items()}
        symbols = {**self._graph.symbols, **dict.fromkeys(derived, (0, None))}
        return replace(self._graph, inputs=inputs, nodes=nodes, outputs=outputs, symbols=symbols, derived=derived)

    def _node(self, node: TracedNode) -> TracedNode:
        keywords = {name: self._replaced(item) for name, item in node.keywords.items()}
        arguments, results = (tuple(map(self._replaced, item)) for item in (node.arguments, node.results))
        return replace(node, arguments=arguments, keywords=keywords, results=results)

    def _replaced(self, value: Any) -> Any:
        """A value or an argument with symbols in place of the numbers in it that are not sizes."""
        if isinstance(value, Expression):
            return self._size(value)
        if isinstance(value, tuple):
            return tuple(map(self._replaced, cast("tuple[Any, ...]", value)))
        if isinstance(value, TracedTensor):
            sizes, strides = (tuple(map(self._replaced, item)) for item in (value.sizes, value.strides))
            view = value.view and (value.view[0], self._replaced(value.view[1]))
            return replace(value, sizes=sizes, strides=strides, view=view, offset=self._replaced(value.offset))
        return value

    def _size(self, number: Expression) -> Expression:
        if not is_whole(number) or self._is_size(number):
            return number
        if number.word in SIZES:
            number = replace(number, parts=tuple(map(self._size, number.parts)))
            if self._is_size(number):
                return number
        name = self._names.setdefault(number, f"d{len(self._names)}")
        self._symbols[name] = _symbol(name)
        return Expression("symbol", value=name)

    def _is_size(self, number: Expression) -> bool:
        try:
            size_of_expression(number, self._symbols)
        except UnsupportedError:
            return False
        return True


def is_whole(number: Expression) -> bool:
    """Whether an expression is a whole number, not a float or a truth value."""
    if number.word in SIZES:
        return all(map(is_whole, number.parts))
    return number.word in ROUNDINGS or number.word in ("number", "symbol")


def _symbol(name: str) -> SymbolicSize:
    """Any size."""
    return SymbolicSize.of(Symbol(name, 0, 1 << 31))

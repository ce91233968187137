"""Rename inputs, nodes and symbols of traced graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from glow_mlir.frontends.torch.traced_graph import Expression, Reference, TracedGraph, TracedTensor
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Renaming:
    """A renaming of inputs, nodes and symbols of a graph."""

    names: Mapping[str, str]
    """Name of an input or node → its new name."""
    symbols: Mapping[str, str]

    def graph(self, graph: TracedGraph) -> TracedGraph:
        """The renamed graph."""
        return TracedGraph(
            tuple(replace(item, name=self._name(item.name), value=self._value(item.value)) for item in graph.inputs),
            tuple(
                replace(
                    node,
                    name=self._name(node.name),
                    arguments=self._argument(node.arguments),
                    keywords={name: self._argument(item) for name, item in node.keywords.items()},
                    results=tuple(map(self._value, node.results)),
                )
                for node in graph.nodes
            ),
            self._argument(graph.outputs),
            {self.symbols.get(name, name): bounds for name, bounds in graph.symbols.items()},
            graph.derived,
            graph.size_inputs,
        )

    def _name(self, name: str) -> str:
        return self.names.get(name, name)

    def _argument(self, item: Any) -> Any:
        if isinstance(item, Reference):
            return replace(item, name=self._name(item.name))
        if isinstance(item, tuple):
            return tuple(map(self._argument, cast("tuple[Any, ...]", item)))
        return self._value(item)

    def _value(self, value: Any) -> Any:
        if isinstance(value, TracedTensor):
            sizes, strides = (tuple(map(self._value, item)) for item in (value.sizes, value.strides))
            return replace(value, sizes=sizes, strides=strides)
        if not isinstance(value, Expression):
            return value
        if value.word == "symbol":
            return replace(value, value=self.symbols.get(str(value.value), value.value))
        return replace(value, parts=tuple(map(self._value, value.parts)))

"""Graph transformations: make changes of inputs outputs, and add inputs and outputs for symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from glow_mlir.frontends.torch.graph_signature import (
    COPY_INTO,
    changed_inputs,
    input_symbols,
    symbol_axes,
    symbols_of,
    used_names,
)
from glow_mlir.frontends.torch.traced_graph import (
    SIZE,
    Expression,
    Reference,
    TracedGraph,
    TracedInput,
    TracedNode,
    TracedTensor,
)
from glow_mlir.support.dataclass import dataclass
from glow_mlir.torch.array_call import size_input, size_output


@dataclass(frozen=True)
class Functional:
    """A graph whose last outputs are the new values of the inputs at `positions`."""

    graph: TracedGraph
    positions: tuple[int, ...]

    def around(self, call: Callable[[list[Any]], list[Any]]) -> Callable[[list[Any]], list[Any]]:
        """Wrap a call of this graph as a call that changes the inputs."""
        if not self.positions:
            return call

        def changing(inputs: list[Any]) -> list[Any]:
            outputs = call(inputs)
            count = len(outputs) - len(self.positions)
            for position, value in zip(self.positions, outputs[count:], strict=True):
                inputs[position].detach().copy_(value)
            return outputs[:count]

        return changing


def without_changes(graph: TracedGraph) -> Functional:
    """A graph that returns the new values of its inputs instead of changing them."""
    changed = changed_inputs(graph)
    positions = tuple(position for position, item in enumerate(graph.inputs) if item.name in changed)
    nodes = tuple(node for node in graph.nodes if node.target != COPY_INTO)
    added = tuple(changed[graph.inputs[position].name] for position in positions)
    return Functional(replace(graph, nodes=nodes, outputs=(*graph.outputs, *added)), positions)


def with_size_inputs(graph: TracedGraph) -> tuple[TracedGraph, tuple[str, ...]]:
    """
    Make each symbol the size of an input that is read; return the graph, and the symbols that got an extra input.

    These inputs are empty.
    """
    read = used_names(graph)
    available = {symbol for symbol, position, _ in symbol_axes(graph) if graph.inputs[position].name in read}
    missing = tuple(symbol for symbol in input_symbols(graph) if symbol not in available)
    added = tuple(
        TracedInput(size_input(symbol), TracedTensor("bool", (Expression("symbol", value=symbol),), (1,), ((2,), (1,))))
        for symbol in missing
    )
    names = tuple(item.name for item in added)
    return replace(graph, inputs=(*graph.inputs, *added), size_inputs=names), missing


def with_size_outputs(graph: TracedGraph) -> tuple[TracedGraph, tuple[str, ...]]:
    """
    Add outputs for the data-dependent symbols in the shapes of outputs; return the graph and these symbols.

    Each is an additional integer output.
    """
    values = graph.values
    available = [values[item.name][item.index] if isinstance(item, Reference) else item for item in graph.outputs]
    needed = {symbol for value in available for symbol in symbols_of(value)}
    needed |= {symbol for name, item in graph.derived.items() if name in needed for symbol in item.symbols}
    missing = tuple(sorted(needed.difference(input_symbols(graph), graph.derived)))
    nodes = tuple(
        TracedNode(size_output(symbol), SIZE, (Expression("symbol", value=symbol),), {}, (TracedTensor("int64", ()),))
        for symbol in missing
    )
    outputs = tuple(Reference(node.name) for node in nodes)
    return replace(graph, nodes=(*graph.nodes, *nodes), outputs=(*graph.outputs, *outputs)), missing

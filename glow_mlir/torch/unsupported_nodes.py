"""Nodes of a graph that are not compiled: unsupported operators, and reads of numbers from tensors."""

from __future__ import annotations

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.torch.functions import importer_of
from glow_mlir.frontends.torch.graph_signature import (
    COPY_INTO,
    has_effects,
    read_by,
    reads_data,
    symbol_axes,
)
from glow_mlir.frontends.torch.importer import GraphImport
from glow_mlir.frontends.torch.node import element_named
from glow_mlir.frontends.torch.traced_graph import TracedGraph, TracedTensor
from glow_mlir.torch.numbers import evaluated


def unsupported_nodes(graph: TracedGraph) -> dict[str, str]:
    """The nodes of a graph that PyTorch has to compute → reason; empty for reads of numbers, which split any graph."""
    found = {node.name: "" for node in graph.nodes if reads_data(node)} | _with_strange_types(graph)
    found |= {
        node.name: f"the operator {node.target} is not supported"
        for node in graph.nodes
        if (any(isinstance(result, TracedTensor) for result in node.results) or has_effects(node))
        and node.target != COPY_INTO
        and importer_of(node.target) is None
    }
    trial = GraphImport(graph, dimensions=_example_sizes(graph), is_trial=True)
    try:
        trial.run()
    except UnsupportedError:
        return found | trial.failed
    return found


def _with_strange_types(graph: TracedGraph) -> dict[str, str]:
    """Node with tensors of an unsupported type → reason."""
    values = graph.values
    found: dict[str, str] = {}
    for node in graph.nodes:
        for value in (*node.results, *(values[item.name][item.index] for item in read_by(node))):
            if isinstance(value, TracedTensor):
                try:
                    element_named(value.dtype)
                except UnsupportedError as error:
                    found[node.name] = error.reason
    return found


def _example_sizes(graph: TracedGraph) -> dict[str, int]:
    """Symbol → its value in the example."""
    found = dict.fromkeys(graph.symbols.keys() - graph.derived.keys(), 2)
    for symbol, location, axis in symbol_axes(graph):
        value = graph.inputs[location].value
        if isinstance(value, TracedTensor) and value.strides:  # Other values have no example.
            found[symbol] = value.hint[0][axis]
    # In the order in which they are derived from each other; values of floats have no example.
    for name, item in graph.derived.items():
        found[name] = int(evaluated(item, found)) if item.symbols <= found.keys() else 2
    return found

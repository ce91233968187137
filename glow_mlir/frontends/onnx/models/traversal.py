"""All graphs, nodes and tensors of an ONNX model, including those of subgraphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx


def graphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graph attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and its subgraphs, outer ones first."""
    yield graph
    yield from graphs_inside(graph.node)


def graphs_inside(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    """The subgraphs of nodes, outer ones first."""
    for node in nodes:
        for inner in graphs_of(node):
            yield from all_graphs(inner)


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes and the nodes of their subgraphs."""
    for node in nodes:
        yield node
        for graph in graphs_of(node):
            yield from all_nodes(graph.node)


def tensors_of(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    """The tensor attributes of a node, without those of subgraphs."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """The tensors of a model: in its graph, in subgraphs, and in its functions."""
    for graph in all_graphs(model.graph):
        yield from graph.initializer
    for function in model.functions:
        for attribute in function.attribute_proto:
            yield attribute.t
        for graph in graphs_inside(function.node):
            yield from graph.initializer
    bodies = (model.graph.node, *(function.node for function in model.functions))
    for node in all_nodes(item for body in bodies for item in body):
        yield from tensors_of(node)

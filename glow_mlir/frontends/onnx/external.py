"""The files beside an ONNX model that hold its weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx.external_data_helper import uses_external_data

from glow_mlir.frontends.onnx.importer import Model
from glow_mlir.frontends.onnx.tensors import is_inside


def external_files(model: Model) -> list[str]:
    """
    The names, relative to the model's folder, of the files with weights that an opened model refers to, sorted.

    Tensors may be in its graph, in graphs inside nodes, and in its functions. Whether the files exist is open.
    """
    tensors = [*_of_graph(model.proto.graph)]
    for function in model.proto.functions:
        tensors += (*_of_attributes(function.attribute_proto), *_of_nodes(function.node))
    outside = (tensor for tensor in tensors if uses_external_data(tensor) and not is_inside(tensor))
    entries = (entry for tensor in outside for entry in tensor.external_data)
    return sorted({entry.value for entry in entries if entry.key == "location" and entry.value})


def _of_graph(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The tensors of a graph and of the graphs inside its nodes."""
    yield from graph.initializer
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        yield from _of_attributes(node.attribute)


def _of_attributes(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in attributes:
        yield from (attribute.t, *attribute.tensors)
        for inner in (attribute.g, *attribute.graphs):
            yield from _of_graph(inner)

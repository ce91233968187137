"""The files beside an ONNX model that hold its weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import onnx
from onnx.external_data_helper import uses_external_data

from glow_mlir.frontends.onnx.importer import ModelSource, open_model
from glow_mlir.frontends.onnx.tensors import is_inside


def external_files(source: ModelSource) -> dict[str, list[int]]:
    """Name → size in bytes and time of change in nanoseconds of each file with weights beside the model."""
    model = open_model(source)
    found: dict[str, list[int]] = {}
    if (path := model.path) is None:
        return found
    for tensor in _tensors(model.proto.graph):
        names = [entry.value for entry in tensor.external_data if entry.key == "location"]
        for name in names if uses_external_data(tensor) and not is_inside(tensor) else []:
            # The importer has better words for a file that is not there.
            with suppress(OSError):
                status = (path.parent / name).stat()
                found[name] = [status.st_size, status.st_mtime_ns]
    return found


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The tensors of a graph and of the graphs inside its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)

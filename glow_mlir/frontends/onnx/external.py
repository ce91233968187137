"""The external files of an ONNX model that hold its weights."""

from __future__ import annotations

from onnx.external_data_helper import uses_external_data

from glow_mlir.frontends.onnx.importer import Model
from glow_mlir.frontends.onnx.models.tensors import is_inside
from glow_mlir.frontends.onnx.models.traversal import all_tensors


def external_files(model: Model) -> list[str]:
    """
    The sorted names of an opened model's external files, relative to the model's folder.

    Tensors may be in its graph, in graphs inside nodes, and in its functions. The files need not exist.
    """
    outside = (tensor for tensor in all_tensors(model.proto) if uses_external_data(tensor) and not is_inside(tensor))
    entries = (entry for tensor in outside for entry in tensor.external_data)
    return sorted({entry.value for entry in entries if entry.key == "location" and entry.value})

"""The metadata of an ONNX model, and the nodes that it lists."""

from __future__ import annotations

from typing import Any

from glow_mlir.frontends.onnx.importer import ModelSource, open_model
from glow_mlir.frontends.onnx.models.domains import plain_domain


def metadata_of(source: ModelSource) -> dict[str, Any]:
    """The metadata, named as in `ModelMetadata`; raises `ModelError` if it is not an ONNX model."""
    model = open_model(source).proto
    return {
        "producer_name": model.producer_name,
        "graph_name": model.graph.name,
        "domain": model.domain,
        "description": model.doc_string,
        "graph_description": model.graph.doc_string,
        "version": model.model_version,
        "custom_metadata_map": {entry.key: entry.value for entry in model.metadata_props},
    }


def nodes_of(source: ModelSource) -> list[tuple[str, str, str]]:
    """Domain, kind and name of each node of the graph; raises `ModelError` if it is not an ONNX model."""
    nodes = open_model(source).proto.graph.node
    return [(plain_domain(node.domain), node.op_type, node.name) for node in nodes]

"""The provider of each node of a model, as onnxruntime reports it; one provider runs the whole graph."""

from __future__ import annotations

from typing import Any

from glow_mlir.api.model_identity import is_ir
from glow_mlir.errors import UnsupportedError
from glow_mlir.support.dataclass import dataclass

ASSIGNMENT_KEY = "session.record_ep_graph_assignment_info"


@dataclass(frozen=True)
class OrtEpAssignedNode:
    """A node of a model."""

    domain: str
    op_type: str
    name: str


@dataclass(frozen=True)
class OrtEpAssignedSubgraph:
    """Nodes, and the provider that runs them."""

    ep_name: str
    nodes: tuple[OrtEpAssignedNode, ...]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """The nodes."""
        return list(self.nodes)


def assigned_nodes(model: Any, provider: str) -> list[OrtEpAssignedSubgraph]:
    """
    Each node of a model's graph as in its file, in a subgraph of its own.

    Raises `UnsupportedError` for our modules, and `ModelError` if the file can no longer be read.
    """
    if is_ir(model):
        raise UnsupportedError("a module has no nodes of ONNX", hint="use glow-run --compilation-log")
    from glow_mlir.frontends.onnx.metadata import nodes_of

    return [OrtEpAssignedSubgraph(provider, (OrtEpAssignedNode(*words),)) for words in nodes_of(model)]

"""Make every intermediate value of a model an output, to compare models layer by layer."""

from __future__ import annotations

import onnx
from google.protobuf.message import EncodeError
from onnx import checker, external_data_helper

from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import ModelSource, load_model
from glow_mlir.frontends.onnx.models.domains import plain_domain
from glow_mlir.frontends.onnx.models.order import node_name, sorted_nodes, used_names
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.ir.registry import operator_label
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ExposedModel:
    """
    A copy of a model whose node results are outputs as well.

    `layers` maps the name of each such output to the name and kind of its node, in topological order.
    """

    model: onnx.ModelProto
    layers: dict[str, tuple[str, str]]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of all outputs, in order; those of the original model come first."""
        return tuple(value.name for value in self.model.graph.output)

    def serialized(self) -> bytes:
        """The model as bytes; raises `UnsupportedError` for one that is too large for ONNX's format."""
        try:
            return self.model.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise UnsupportedError("the model is larger than 2 GB, too large for one file") from error


def exposed_model(source: ModelSource) -> ExposedModel:
    """
    Make the result of every node an output.

    If a node has several results, the used ones become outputs, or else the first. Constants are not layers. External
    weights are read, so that the copy is self-contained. Raises `ModelError` for a damaged model.
    """
    loaded = load_model(source)
    path, model = loaded.path, onnx.ModelProto()
    model.CopyFrom(loaded.proto)
    try:
        if path is not None:
            _load_external_data(model, str(path.parent))
        layers = _layers(model.graph)
    except GlowError as error:
        error.file = error.file or ("" if path is None else str(path))
        raise
    present = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in layers if name not in present)
    return ExposedModel(model, layers)


def _load_external_data(model: onnx.ModelProto, folder: str) -> None:
    try:
        external_data_helper.load_external_data_for_model(model, folder)
    except (OSError, ValueError, checker.ValidationError) as error:
        raise ModelError(f"external weights cannot be read: {' '.join(str(error).split())}") from error


def _layers(graph: onnx.GraphProto) -> dict[str, tuple[str, str]]:
    """Name of each value to compare → the name and kind of its node, in topological order."""
    known = {value.name for value in graph.input} | initializers_of(graph).keys()
    used = {name for node in graph.node for name in used_names(node)} | {value.name for value in graph.output}
    layers: dict[str, tuple[str, str]] = {}
    for node in sorted_nodes(graph.node, known.__contains__):
        if node.op_type == "Constant":
            continue
        kind = operator_label(plain_domain(node.domain), node.op_type)
        results = [name for name in node.output if name in used] or [name for name in node.output if name][:1]
        layers |= dict.fromkeys(results, (node_name(node), kind))
    return layers

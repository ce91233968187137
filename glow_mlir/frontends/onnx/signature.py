"""What an ONNX model takes and gives, without importing its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx
from google.protobuf.message import EncodeError
from onnx import shape_inference

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.errors import GlowError, UnsupportedOperatorsError
from glow_mlir.frontends.onnx.functions import unknown_operator
from glow_mlir.frontends.onnx.importer import Model, check_names, opsets_of
from glow_mlir.frontends.onnx.inlining import inlined
from glow_mlir.frontends.onnx.order import node_name
from glow_mlir.frontends.onnx.sparse import initializers_of
from glow_mlir.frontends.onnx.types import check_dimensions, declared_sizes, element_of_onnx, input_sizes
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.support.symbols import Dimension


def free_dimensions(graph: onnx.GraphProto) -> list[str]:
    """The free dimensions of a graph's inputs that are tensors."""
    initializers = initializers_of(graph)
    given = (value for value in graph.input if value.name not in initializers)
    return list(dict.fromkeys(size for value in given for size in declared_sizes(value) if isinstance(size, str)))


def signature_of(model: Model, dimensions: Mapping[str, Dimension]) -> Signature:
    """
    The inputs and outputs of a model; `dimensions` gives free dimensions of inputs their sizes.

    Outputs have what the model says of them, and where that is nothing, what ONNX infers. Raises `GlowError` where the
    import would, whatever sizes there are: for operators that are not supported, and for wrong `dimensions`.
    """
    try:
        check_names(model.proto.graph)
        opsets, graph = opsets_of(model.proto), inlined(model.proto).graph
        initializers = initializers_of(graph)
        given = [value for value in graph.input if value.name not in initializers]
        sizes = {value.name: input_sizes(value) for value in given}
        check_dimensions(sizes, dimensions)
        _check_operators(graph.node, opsets)
        fixed = {label: size for label, size in dimensions.items() if isinstance(size, int)}
        inputs = [
            Argument(
                value.name,
                _dtype(value),
                tuple(fixed.get(size, size) if isinstance(size, str) else size for size in sizes[value.name]),
            )
            for value in given
        ]
        outputs = [
            Argument(
                value.name,
                _dtype(value),
                tuple(declared_sizes(value)) if value.type.tensor_type.HasField("shape") else None,
            )
            for value in _outputs(model.proto)
        ]
    except GlowError as error:
        error.file = error.file or ("" if model.path is None else str(model.path))
        raise
    return Signature(tuple(inputs), tuple(outputs))


def _dtype(value: onnx.ValueInfoProto) -> str:
    """The element type of a tensor; empty where the model does not say one."""
    kind = value.type.tensor_type.elem_type
    return numpy_dtype(element_of_onnx(kind, f"'{value.name}'")).name if kind else ""


def _outputs(model: onnx.ModelProto) -> Iterable[onnx.ValueInfoProto]:
    """The outputs with their types, inferred where the model does not say them and ONNX can infer them."""
    if all(value.type.tensor_type.HasField("shape") for value in model.graph.output):
        return model.graph.output
    try:
        return shape_inference.infer_shapes(model).graph.output
    except (shape_inference.InferenceError, EncodeError, ValueError, RuntimeError):
        return model.graph.output


def _check_operators(nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int]) -> None:
    """Raise `UnsupportedOperatorsError` for operators that no importer knows, and that the standard does not define."""
    unknown = [(label, node_name(node)) for node in nodes if (label := unknown_operator(node, opsets))]
    if unknown:
        raise UnsupportedOperatorsError(unknown)

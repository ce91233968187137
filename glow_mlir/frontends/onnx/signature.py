"""What an ONNX model takes and gives, without importing its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
from glow_mlir.frontends.onnx.types import (
    check_dimensions,
    declared_sizes,
    element_of_onnx,
    input_sizes,
    open_ranks,
    open_sizes,
)
from glow_mlir.runtime.signature import Argument, Signature, rank_label
from glow_mlir.support.symbols import Dimension


def free_dimensions(graph: onnx.GraphProto, dimensions: Mapping[str, Dimension]) -> list[str]:
    """The free dimensions of a graph's inputs that are tensors, and the ranks that `dimensions` leave open."""
    initializers = initializers_of(graph)
    tensors = (value for value in graph.input if value.type.WhichOneof("value") == "tensor_type")
    given = (value for value in tensors if value.name not in initializers)
    sizes = ((value.name, open_sizes(value, dimensions)) for value in given)
    labels = (label for name, own in sizes for label in ((rank_label(name),) if own is None else own))
    return list(dict.fromkeys(label for label in labels if isinstance(label, str)))


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
        sizes = {value.name: input_sizes(value, dimensions) for value in given}
        check_dimensions(sizes, dimensions, open_ranks(given))
        _check_operators(graph.node, opsets)
        fixed = {label: size for label, size in dimensions.items() if isinstance(size, int)}
        inputs = [Argument(value.name, _dtype(value), _fixed(sizes[value.name], fixed)) for value in given]
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


def _fixed(sizes: Sequence[int | str] | None, fixed: Mapping[str, int]) -> tuple[int | str, ...] | None:
    """Sizes of an input with those in the place of free dimensions that are given."""
    if sizes is None:
        return None
    return tuple(fixed.get(size, size) if isinstance(size, str) else size for size in sizes)


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

"""What an ONNX model takes and gives, without importing its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

import onnx
from google.protobuf.message import EncodeError
from onnx import checker, shape_inference

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.errors import GlowError, OptionError, UnsupportedOperatorsError
from glow_mlir.frontends.builder.inputs import check_dimensions
from glow_mlir.frontends.onnx.functions import lacks_operands, unknown_operator
from glow_mlir.frontends.onnx.importer import Model, ModelSource, open_model, opsets_of
from glow_mlir.frontends.onnx.inconsistencies import without_shapes
from glow_mlir.frontends.onnx.inlining import inlined
from glow_mlir.frontends.onnx.order import node_name
from glow_mlir.frontends.onnx.sparse import initializers_of
from glow_mlir.frontends.onnx.traversal import graphs_inside
from glow_mlir.frontends.onnx.types import (
    declared_sizes,
    element_of_onnx,
    input_sizes,
    open_ranks,
    open_sizes,
    unknown_words,
)
from glow_mlir.frontends.onnx.values import type_words
from glow_mlir.runtime.signature import Argument, Signature, rank_label
from glow_mlir.support.dtypes import STRING
from glow_mlir.support.symbols import Dimension


def free_dimensions(graph: onnx.GraphProto, dimensions: Mapping[str, Dimension]) -> list[str]:
    """The free dimensions of a graph's inputs that are tensors, and the ranks that `dimensions` leave open."""
    initializers = initializers_of(graph)
    tensors = (value for value in graph.input if value.type.WhichOneof("value") == "tensor_type")
    given = (value for value in tensors if value.name not in initializers)
    sizes = ((value.name, open_sizes(value, dimensions)) for value in given)
    labels = (label for name, own in sizes for label in ((rank_label(name),) if own is None else own))
    return list(dict.fromkeys(label for label in labels if isinstance(label, str)))


def sizes_by_denotation(source: ModelSource, denotations: Mapping[str, int]) -> dict[str, int]:
    """The sizes of the free dimensions of inputs that stand for something; raises `OptionError` where none does."""
    found: dict[str, int] = {}
    seen: set[str] = set()
    for value in open_model(source).proto.graph.input:
        for label, dimension in zip(declared_sizes(value), value.type.tensor_type.shape.dim, strict=True):
            seen.add(dimension.denotation)
            if isinstance(label, str) and dimension.denotation in denotations:
                found[label] = denotations[dimension.denotation]
    if unknown := denotations.keys() - seen:
        known = ", ".join(sorted(seen - {""})) or "none"
        raise OptionError(f"no input has a dimension '{min(unknown)}'", hint=f"there are {known}")
    return found


def signature_of(model: Model, dimensions: Mapping[str, Dimension]) -> Signature:
    """
    The inputs and outputs of a model; `dimensions` gives free dimensions of inputs their sizes.

    Outputs have what the model says of them, and where that is nothing, what ONNX infers; extents that it infers to be
    others than the model says are free. Raises `GlowError` where the
    import would, whatever sizes there are: for operators that are not supported, and for wrong `dimensions`.
    """
    try:
        plain = inlined(model.proto)
        opsets, graph = opsets_of(plain), plain.graph
        initializers = initializers_of(graph)
        given = [value for value in graph.input if value.name not in initializers]
        sizes = {value.name: input_sizes(value, dimensions) for value in given}
        check_dimensions(sizes, dimensions, open_ranks(given))
        _check_operators(graph.node, opsets)
        fixed = {label: size for label, size in dimensions.items() if isinstance(size, int)}
        inputs = [_tensor(value, _fixed(sizes[value.name], fixed)) for value in given]
        has_free = any(isinstance(size, str) for argument in inputs for size in argument.shape or ("",))
        given_by_nodes = _sizes_by_nodes(model.proto) if has_free else {}
        outputs = [_output(value, given_by_nodes.get(value.name), fixed) for value in _outputs(model.proto)]
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
    if kind == onnx.TensorProto.STRING:
        return STRING
    return numpy_dtype(element_of_onnx(kind, f"'{value.name}'")).name if kind else ""


def _tensor(value: onnx.ValueInfoProto, sizes: tuple[int | str, ...] | None) -> Argument:
    """An input or output that is a tensor of these sizes."""
    return Argument(value.name, _dtype(value), sizes, unknown=unknown_words(value))


def value_argument(value: onnx.ValueInfoProto) -> Argument:
    """An input or output of a graph as the graph declares it, whatever it is."""
    if value.type.WhichOneof("value") in ("tensor_type", None):
        sizes = declared_sizes(value) if value.type.tensor_type.HasField("shape") else None
        return _tensor(value, None if sizes is None else tuple(sizes))
    return Argument(value.name, "", (), type_words(value.type))


def _output(value: onnx.ValueInfoProto, given: Sequence[int | str] | None, fixed: Mapping[str, int]) -> Argument:
    """An output as far as the model says what it is, and its nodes the sizes that are `given`."""
    if value.type.WhichOneof("value") not in ("tensor_type", None):
        return Argument(value.name, "", (), type_words(value.type))
    return _tensor(value, _without_inconsistencies(value, given, fixed))


def _outputs(model: onnx.ModelProto) -> Iterable[onnx.ValueInfoProto]:
    """The outputs with their types, inferred where the model does not say them and ONNX can infer them."""
    if all(value.type.tensor_type.HasField("shape") for value in model.graph.output):
        return model.graph.output
    return inferred(model).graph.output


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with the shapes that ONNX infers, or as it is, where ONNX cannot."""
    if lacks_operands(model):
        return model
    try:
        return shape_inference.infer_shapes(model)
    except (shape_inference.InferenceError, checker.ValidationError, EncodeError, ValueError, RuntimeError):
        return model


def _sizes_by_nodes(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    """The sizes that nodes give outputs whose numbers the model says, as far as ONNX infers them."""
    if not any(isinstance(size, int) for value in model.graph.output for size in declared_sizes(value)):
        return {}
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    without_shapes(bare.graph, graphs_inside(bare.graph.node))
    outputs = [value for value in inferred(bare).graph.output if value.type.tensor_type.HasField("shape")]
    for value in outputs:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param.startswith("unk__"):  # ONNX makes names up for what it does not know.
                size.ClearField("dim_param")
    return {value.name: declared_sizes(value) for value in outputs}


def _without_inconsistencies(
    value: onnx.ValueInfoProto, given: Sequence[int | str] | None, fixed: Mapping[str, int]
) -> tuple[int | str, ...] | None:
    """
    The sizes that a model says an output has; free where its nodes give others, which calls warn of.

    `given` has those by nodes, if ONNX infers them: labels that are no dimension's are what it does not know.
    """
    if not value.type.tensor_type.HasField("shape"):
        return None
    sizes = declared_sizes(value)
    if given is None:
        return tuple(sizes)
    if len(sizes) != len(given):
        return tuple(given)
    found: list[int | str] = []
    for axis, (declared, size) in enumerate(zip(sizes, given, strict=True)):
        unknown = f"{value.name}.{axis}"
        size = fixed.get(size, size) if isinstance(size, str) else size
        if isinstance(declared, str) or size in (declared, unknown):
            found.append(declared)
        else:
            found.append(size if isinstance(size, str) else unknown)
    return tuple(found)


def _check_operators(nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int]) -> None:
    """Raise `UnsupportedOperatorsError` for operators that no importer knows, and that the standard does not define."""
    label_of = cache(partial(unknown_operator, opsets=opsets))  # To look through all importers takes its time.
    unknown = [(label, node_name(node)) for node in nodes if (label := label_of(node.domain, node.op_type))]
    if unknown:
        raise UnsupportedOperatorsError(unknown)

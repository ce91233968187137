"""The signature of an ONNX model, without importing its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial

import onnx
from google.protobuf.message import EncodeError
from onnx import checker, shape_inference

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.errors import GlowError, OptionError, UnsupportedOperatorsError
from glow_mlir.frontends.builder.inputs import check_dimensions
from glow_mlir.frontends.onnx.importer import Model, ModelSource, open_model, opsets_of
from glow_mlir.frontends.onnx.inconsistencies import without_shapes
from glow_mlir.frontends.onnx.models.functions import lacks_operands, unknown_operator
from glow_mlir.frontends.onnx.models.inlining import inlined
from glow_mlir.frontends.onnx.models.order import node_name
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.frontends.onnx.models.traversal import graphs_inside
from glow_mlir.frontends.onnx.models.types import (
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
from glow_mlir.support.symbols import GivenDimension, size_from_label, with_numbers


def free_dimensions(graph: onnx.GraphProto, dimensions: Mapping[str, GivenDimension]) -> list[str]:
    """The free dimensions of a graph's inputs that are tensors, and the ranks that `dimensions` leave open."""
    initializers = initializers_of(graph)
    tensors = (value for value in graph.input if value.type.WhichOneof("value") == "tensor_type")
    given = (value for value in tensors if value.name not in initializers)
    sizes = ((value.name, open_sizes(value, dimensions)) for value in given)
    labels = (label for name, own in sizes for label in ((rank_label(name),) if own is None else own))
    return list(dict.fromkeys(label for label in labels if isinstance(label, str)))


def sizes_by_denotation(source: ModelSource, denotations: Mapping[str, int]) -> dict[str, int]:
    """Sizes of free dimensions of inputs, given by denotation; raises `OptionError` for an unknown denotation."""
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


def signature_of(model: Model, dimensions: Mapping[str, GivenDimension]) -> Signature:
    """
    The inputs and outputs of a model; `dimensions` has sizes of free dimensions of inputs.

    Outputs have their declared types, or else those that ONNX infers; extents whose inferred values differ from the
    declared ones are free. Raises `GlowError` for unsupported operators and for wrong `dimensions`, as the import
    would.
    """
    try:
        plain = inlined(model.proto)
        opsets, graph = opsets_of(plain), plain.graph
        initializers = initializers_of(graph)
        given = [value for value in graph.input if value.name not in initializers]
        sizes = {value.name: input_sizes(value, dimensions) for value in given}
        free = check_dimensions(sizes, dimensions, open_ranks(given))
        _check_operators(graph.node, opsets)
        fixed = _known_sizes(free, dimensions)
        inputs = [_tensor(value, _fixed(sizes[value.name], fixed)) for value in given]
        has_free = any(isinstance(size, str) for argument in inputs for size in argument.shape or ("",))
        given_by_nodes = _sizes_by_nodes(model.proto) if has_free else {}
        outputs = [_output(value, given_by_nodes.get(value.name), fixed) for value in _outputs(model.proto)]
    except GlowError as error:
        error.file = error.file or ("" if model.path is None else str(model.path))
        raise
    return Signature(tuple(inputs), tuple(outputs))


def _known_sizes(free: Collection[str], dimensions: Mapping[str, GivenDimension]) -> dict[str, int | str]:
    """Free dimension → its size, or the expression of others that it is, in which given sizes are numbers."""
    numbers = {label: size for label, size in dimensions.items() if isinstance(size, int)}
    texts = {label: dimensions.get(label, label) for label in free}
    expressions = {label: text for label, text in texts.items() if isinstance(text, str)}
    return numbers | {
        label: with_numbers(text, numbers)
        for label, text in expressions.items()
        if size_from_label(text, dict.fromkeys(free, 1)) is not None
    }


def _fixed(sizes: Sequence[int | str] | None, fixed: Mapping[str, int | str]) -> tuple[int | str, ...] | None:
    """The sizes of an input, with free dimensions replaced by those that are known, see `_known_sizes`."""
    if sizes is None:
        return None
    return tuple(fixed.get(size, size) if isinstance(size, str) else size for size in sizes)


def _dtype(value: onnx.ValueInfoProto) -> str:
    """The element type of a tensor; empty if it is not declared."""
    kind = value.type.tensor_type.elem_type
    if kind == onnx.TensorProto.STRING:
        return STRING
    return numpy_dtype(element_of_onnx(kind, f"'{value.name}'")).name if kind else ""


def _tensor(value: onnx.ValueInfoProto, sizes: tuple[int | str, ...] | None) -> Argument:
    """The argument for a tensor with these sizes."""
    return Argument(value.name, _dtype(value), sizes, unknown=unknown_words(value))


def value_argument(value: onnx.ValueInfoProto) -> Argument:
    """The argument for an input or output of a graph, of any type, as declared."""
    if value.type.WhichOneof("value") in ("tensor_type", None):
        sizes = declared_sizes(value) if value.type.tensor_type.HasField("shape") else None
        return _tensor(value, None if sizes is None else tuple(sizes))
    return Argument(value.name, "", (), type_words(value.type))


def _output(value: onnx.ValueInfoProto, given: Sequence[int | str] | None, fixed: Mapping[str, int | str]) -> Argument:
    """The argument for an output; `given` are its sizes inferred from nodes."""
    if value.type.WhichOneof("value") not in ("tensor_type", None):
        return Argument(value.name, "", (), type_words(value.type))
    return _tensor(value, _without_inconsistencies(value, given, fixed))


def _outputs(model: onnx.ModelProto) -> Iterable[onnx.ValueInfoProto]:
    """The outputs with their types; undeclared ones are inferred if ONNX can."""
    if all(value.type.tensor_type.HasField("shape") for value in model.graph.output):
        return model.graph.output
    return inferred(model).graph.output


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the shapes that ONNX infers, or unchanged if inference fails."""
    if lacks_operands(model):
        return model
    try:
        return shape_inference.infer_shapes(model)
    except (shape_inference.InferenceError, checker.ValidationError, EncodeError, ValueError, RuntimeError):
        return model


def _sizes_by_nodes(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    """The sizes of outputs that ONNX infers from nodes alone; empty if the model declares no constant sizes."""
    if not any(isinstance(size, int) for value in model.graph.output for size in declared_sizes(value)):
        return {}
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    without_shapes(bare.graph, graphs_inside(bare.graph.node))
    outputs = [value for value in inferred(bare).graph.output if value.type.tensor_type.HasField("shape")]
    for value in outputs:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param.startswith("unk__"):  # ONNX's name for an unknown size.
                size.ClearField("dim_param")
    return {value.name: declared_sizes(value) for value in outputs}


def _without_inconsistencies(
    value: onnx.ValueInfoProto, given: Sequence[int | str] | None, fixed: Mapping[str, int | str]
) -> tuple[int | str, ...] | None:
    """
    The declared sizes of an output; those that contradict the nodes are free, and calls warn of them.

    `given` are the sizes inferred from nodes, if ONNX can infer them; sizes that it does not know have labels
    `output.axis`.
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
    """Raise `UnsupportedOperatorsError` for operators with neither an importer nor a body in the standard."""
    label_of = cache(partial(unknown_operator, opsets=opsets))  # Searching all importers is slow.
    unknown = [(label, node_name(node)) for node in nodes if (label := label_of(node.domain, node.op_type))]
    if unknown:
        raise UnsupportedOperatorsError(unknown)

"""Run the standard's own checker and type inference on a model, and report errors in one line."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import onnx
from google.protobuf.message import EncodeError
from onnx import checker, defs, helper, numpy_helper, shape_inference
from onnx.external_data_helper import uses_external_data
from onnx.onnx_cpp2py_export.shape_inference import infer_shapes

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.onnx.inconsistencies import WITH_INITIALIZERS, lifted_initializers, without_shapes
from glow_mlir.frontends.onnx.models.assumptions import EARLY
from glow_mlir.frontends.onnx.models.domains import STANDARD, plain_domain
from glow_mlir.frontends.onnx.models.order import node_name
from glow_mlir.frontends.onnx.models.tensors import Tensors, is_inside
from glow_mlir.frontends.onnx.models.traversal import all_graphs, all_nodes, all_tensors, graphs_inside
from glow_mlir.frontends.onnx.models.wire import MIN_LEFT
from glow_mlir.ir.registry import IMPORTERS
from glow_mlir.support.dataclass import dataclass

_UNKNOWN = "glow_mlir.unknown"
"""The domain, in the checked copy, of operators that the standard does not define."""

_NODE = re.compile(r"Name: (?P<name>.*) OpType: |node name: (?P<inner>.*?)\)(?:: |$)|\bname: (?P<late>.*) OpType: ")
_KIND = re.compile(r"OpType: (?P<kind>\w+)|op_type:(?P<inner>\w+)")

_NEWER = re.compile(r"No Op registered for (?P<kind>\w+) with domain_version of (?P<version>\d+)")

FORGETFUL = frozenset({"STFT"})
"""Operators without a function body whose inference takes zero as the default of absent attributes."""

CONTRADICTED = frozenset({"MeanVarianceNormalization"})
"""Operators that take more element types than their function bodies in the standard."""

HINTS: Mapping[str, str] = {
    "topologically sorted": "sort the nodes, and make sure that one computes the value",
    "existing elem type": "the declared type of a result must match that of its node",
    "single static assignment": "give each value a name of its own",
}
"""Fragment of the checker's message → hint."""


def check_graph(model: onnx.ModelProto) -> None:
    """Raise `ModelError` for repeated names or a graph without outputs, `UnsupportedError` for a newer IR version."""
    if model.ir_version > onnx.IR_VERSION:
        newest = onnx.IR_VERSION
        reason = f"IR version {model.ir_version} is newer than {newest}, the latest of this onnx package"
        raise UnsupportedError(reason, hint="install a newer onnx package, or export the model with an older one")
    graph = model.graph
    _check_unique("input", (value.name for value in graph.input))
    _check_unique("output", (value.name for value in graph.output))
    sparse = (tensor.values for tensor in graph.sparse_initializer)
    _check_unique("initializer", (tensor.name for tensor in (*graph.initializer, *sparse)))
    if not graph.output:
        raise ModelError("the graph has no outputs", hint="list the results of the model as its outputs")


def _check_unique(what: str, names: Iterable[str]) -> None:
    counted = Counter(names)
    if "" in counted:
        raise ModelError(f"an {what} has no name", hint="give each a name of its own")
    if twice := [name for name, count in counted.items() if count > 1]:
        raise ModelError(f"{what} '{twice[0]}' is listed twice", hint="give each a name of its own")


def check_model(model: onnx.ModelProto, inlined: onnx.ModelProto, tensors: Tensors) -> None:
    """
    Raise `ModelError` for a model that violates the standard; `inlined` is the model with its functions inlined.

    Some of the checker's demands are lifted: types and shapes of outputs, which follow from the nodes, the definition
    of all operators, and the faults listed in `Inconsistencies`.
    """
    try:
        copy = checked_copy(model, tensors)
        content = _for_inference(copy if inlined is model else checked_copy(inlined, tensors))
    except UnicodeDecodeError as error:
        raise ModelError("a name in the model is not text", hint="check that the download is complete") from error
    for graph in (
        *all_graphs(copy.graph),
        *graphs_inside(node for function in copy.functions for node in function.node),
    ):
        weights = {tensor.name for tensor in graph.initializer}  # Declarations of weights must be complete.
        for value in (*(value for value in graph.input if value.name not in weights), *graph.output):
            _complete(value)
    _ask(lambda: checker.check_model(_serialized(copy)), copy)
    # Not `shape_inference.infer_shapes`, which would read the result back.
    try:
        _ask(lambda: infer_shapes(content, True, True, False), copy)
    except ModelError:
        # With unknown sizes inference may mistake one axis for another; the shapes that the model declares help.
        copied = checked_copy(inlined, tensors, keeps_shapes=True)
        _ask(lambda: infer_shapes(_for_inference(copied), True, True, False), copy)


def _for_inference(model: onnx.ModelProto) -> bytes:
    """
    Serialize the model for inference: a model without opsets gets the first one.

    Sparse initializers become dense ones, because inference knows no operators on sparse tensors.
    """
    if model.opset_import and not any(graph.sparse_initializer for graph in all_graphs(model.graph)):
        return _serialized(model)
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    if not copied.opset_import:
        copied.opset_import.append(helper.make_opsetid("", 1))
    for graph in all_graphs(copied.graph):
        graph.value_info.extend(_as_dense(tensor) for tensor in graph.sparse_initializer)
        graph.ClearField("sparse_initializer")
    return _serialized(copied)


def _serialized(model: onnx.ModelProto) -> bytes:
    try:
        return model.SerializeToString()
    except (EncodeError, ValueError) as error:
        reason = "the model is larger than 2 GB without its weights, or its graphs are nested too deeply"
        raise ModelError(reason, hint="export it again, with external data") from error


def _ask(question: Callable[[], object], model: onnx.ModelProto) -> None:
    """Call onnx, and raise its errors as `ModelError`."""
    try:
        question()
    except (checker.ValidationError, shape_inference.InferenceError, RuntimeError, ValueError, IndexError) as error:
        raise _model_error(str(error), model) from error


def _model_error(text: str, model: onnx.ModelProto) -> ModelError:
    """Convert onnx's message of several lines to an error that names the node."""
    found, kind = _NODE.search(text.replace("\n", " ")), _KIND.search(text)
    name = next((part for part in found.groups() if part), "").strip() if found else ""
    operator = next((part for part in kind.groups() if part), "") if kind else ""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("==>", "name: ", "OpType: "))]
    # The first of several faults; its text follows onnx's prefixes.
    first = re.split(r"Inference error\(s\): ", lines[0] if lines else "it is not valid")[-1]
    reason = re.sub(r"^(\[\w+Error\] |\(op_type:[^)]*\): )+", "", first).rstrip(": .")
    nodes = {node.name for node in all_nodes(model.graph.node)}
    hint = next((hint for key, hint in HINTS.items() if key in text), "")
    if not hint and operator:
        hint = "see https://onnx.ai/onnx/operators"
    if newer := _NEWER.search(text):
        reason = f"it is of opset {_first_version(newer['kind'])}, and the model imports opset {newer['version']}"
        hint = "export the model for an opset that has the operator"
    reason = f"{operator}: {reason}" if operator else f"the model is not valid: {reason}"
    return ModelError(reason, node=name if name in nodes else "", hint=hint or "export the model again")


def _first_version(kind: str) -> int:
    """The first opset version that has an operator of this name."""
    return min(schema.since_version for schema in defs.get_all_schemas_with_history() if schema.name == kind)


def _complete(value: onnx.ValueInfoProto) -> None:
    """Fill in a missing type, element type or shape, which the checker would demand."""
    if value.type.WhichOneof("value") is None:
        value.type.tensor_type.SetInParent()
    if value.type.WhichOneof("value") == "tensor_type":
        described = value.type.tensor_type
        described.elem_type = described.elem_type or onnx.TensorProto.FLOAT
        if not described.HasField("shape"):
            described.shape.SetInParent()


# ---- the copy that is checked


def checked_copy(model: onnx.ModelProto, tensors: Tensors, keeps_shapes: bool = False) -> onnx.ModelProto:
    """
    A copy of a model for the checker: every node has a name, and large weights become inputs, to save memory.

    The copy embeds small external tensors, because it has no folder; raises `ModelError` for one that cannot be read.
    Operators that the standard does not define are moved to a domain of their own. Declared shapes of results are
    removed unless it `keeps_shapes`: see `Inconsistencies`.
    """
    graph = model.graph
    copy = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    copy.graph.name = graph.name
    copy.graph.node.extend(graph.node)
    copy.graph.input.extend(graph.input)
    copy.graph.output.extend(graph.output)
    copy.graph.value_info.extend(graph.value_info)
    copy.graph.sparse_initializer.extend(graph.sparse_initializer)
    if lifted_initializers(model):
        copy.ir_version = WITH_INITIALIZERS + 1
        if not copy.opset_import:
            copy.opset_import.append(helper.make_opsetid("", 1))
    known = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if _is_large(tensor):
            _check_content(tensor, tensors)
            copy.graph.input.extend([_as_input(tensor)] if tensor.name not in known else [])
            known.add(tensor.name)
        else:
            copy.graph.initializer.append(tensor)
    for tensor in all_tensors(copy):
        if uses_external_data(tensor):
            embed(tensor, tensors)
    _name_nodes(copy)
    nodes = (*copy.graph.node, *(node for body in copy.functions for node in body.node))
    if not keeps_shapes:
        without_shapes(copy.graph, graphs_inside(nodes))
    return copy


def _is_large(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor is large, and has all the bytes of its shape."""
    size = math.prod(tensor.dims) * _bytes_of(tensor.data_type)
    is_whole = uses_external_data(tensor) or (tensor.HasField("raw_data") and tensor.ByteSize() >= size)
    return bool(tensor.name) and min(tensor.dims, default=0) >= 0 and size >= MIN_LEFT and is_whole


@cache
def _bytes_of(data_type: int) -> int:
    """The bytes of an element; 0 for types without a fixed size and unknown types."""
    known = data_type in helper.get_all_tensor_dtypes() and data_type != onnx.TensorProto.STRING
    return helper.tensor_dtype_to_np_dtype(data_type).itemsize if known else 0


def _as_input(tensor: onnx.TensorProto) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))


def _as_dense(tensor: onnx.SparseTensorProto) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(tensor.values.name, tensor.values.data_type, list(tensor.dims))


def _check_content(tensor: onnx.TensorProto, tensors: Tensors) -> None:
    """Raise `ModelError` for external data that cannot be read; data inside the model's own file is not checked."""
    if uses_external_data(tensor) and not is_inside(tensor):
        tensors.array(tensor, f"initializer '{tensor.name}'")


def embed(tensor: onnx.TensorProto, tensors: Tensors) -> None:
    """Move a tensor's external data into the tensor itself."""
    array = tensors.array(tensor, f"tensor '{tensor.name}'")
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = numpy_helper.from_array(array).raw_data


def _name_nodes(model: onnx.ModelProto) -> None:
    """
    Give nodes without a name the one that errors use, and ONNX's domain a single name.

    Operators that are in no opset of the standard are moved to a domain that the checker ignores.
    """
    graphs = ((model.graph.node, model.opset_import), *((item.node, item.opset_import) for item in model.functions))
    for nodes, opsets in graphs:
        for opset in opsets:
            opset.domain = plain_domain(opset.domain)
        versions = {opset.domain: opset.version for opset in opsets} or {"": 1}
        for node in all_nodes(nodes):
            node.name = node_name(node)
            domain = plain_domain(node.domain)
            described = _described(node.op_type, domain, versions.get(domain, 0))
            if not described.is_asked:
                domain = _UNKNOWN
            node.domain = domain
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(value for value in described.defaults if value.name not in given)
        if any(node.domain == _UNKNOWN for node in all_nodes(nodes)):
            opsets.append(helper.make_opsetid(_UNKNOWN, 1))


@dataclass(frozen=True)
class _Description:
    """Whether to check an operator, and the default attributes to add because inference would miss them."""

    is_asked: bool
    defaults: tuple[onnx.AttributeProto, ...] = ()


@cache
def _described(kind: str, domain: str, version: int) -> _Description:
    """
    How the checked copy represents an operator.

    Inference ignores the default attributes of operators with a function body, and of `FORGETFUL`. Deprecated forms
    with an importer are not checked.
    """
    if domain not in STANDARD or not defs.has(kind, domain) or (not domain and kind in CONTRADICTED):
        return _Description(is_asked=domain not in STANDARD)
    if not defs.has(kind, version, domain):
        return _Description(is_asked=bool(domain) or kind not in EARLY)
    schema: Any = defs.get_schema(kind, version, domain)  # onnx's annotations of schemas lack the functions.
    if schema.deprecated:
        return _Description(is_asked=(domain, kind, schema.since_version) not in IMPORTERS.all())
    forgets = schema.has_function or kind in FORGETFUL
    defaults = (attribute.default_value for attribute in schema.attributes.values()) if forgets else ()
    return _Description(is_asked=True, defaults=tuple(value for value in defaults if value.name))

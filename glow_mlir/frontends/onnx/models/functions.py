"""Function bodies by which the ONNX standard defines operators, for operators without an importer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import onnx
from onnx import checker, defs, helper, shape_inference
from onnx.external_data_helper import uses_external_data

from glow_mlir.frontends.onnx.models.domains import plain_domain
from glow_mlir.frontends.onnx.models.refusals import refused_label
from glow_mlir.frontends.onnx.models.traversal import graphs_of
from glow_mlir.ir.registry import IMPORTERS


def find_importer(domain: str, kind: str, version: int) -> Callable[..., Any] | None:
    """The newest importer of an operator that is not newer than an opset version; `None` if there is none."""
    versions = [since for d, k, since in IMPORTERS.all() if (d, k) == (domain, kind) and since <= version]
    return IMPORTERS.get((domain, kind, max(versions))) if versions else None


def has_importer(domain: str, kind: str) -> bool:
    """Whether some version of an operator has an importer."""
    return any((d, k) == (domain, kind) for d, k, _ in IMPORTERS.all())


def newest_importer(domain: str) -> int:
    """The newest version of a domain with a new importer; 1 if the domain has none."""
    return max((since for d, _, since in IMPORTERS.all() if d == domain), default=1)


# Any: onnx's annotations of schemas lack the functions.
def schema_of(domain: str, kind: str, version: int) -> Any:
    """The standard's schema of an operator, or `None`."""
    try:
        return defs.get_schema(kind, version, domain)
    except (defs.SchemaError, TypeError):  # There is none, or the version is out of onnx's range.
        return None


def contradiction(
    node: onnx.NodeProto, domain: str, opsets: Mapping[str, int], types: Mapping[str, onnx.TypeProto]
) -> str:
    """
    The standard's complaint about a node; empty if it is valid. `types` has the types of its operands by name.

    `domain` is the node's domain as spelled in `opsets`. Nodes with subgraphs or external tensors are not checked,
    because the checker sees neither the names outside a subgraph nor the files.
    """
    node = _with_domain(node, domain)
    context = checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = dict(opsets)
    schema = schema_of(domain, node.op_type, opsets.get(domain, 0))
    try:
        if _is_whole(node):
            checker.check_node(node, context)
        if schema is not None:
            imports = [helper.make_opsetid(name, version) for name, version in opsets.items()]
            shape_inference.infer_node_outputs(schema, node, dict(types), opset_imports=imports)
    except (checker.ValidationError, shape_inference.InferenceError) as invalid:
        return str(invalid).splitlines()[0].rpartition("Error] ")[2]
    return ""


def _with_domain(node: onnx.NodeProto, domain: str) -> onnx.NodeProto:
    if node.domain == domain:
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.domain = domain
    return copy


def _is_whole(node: onnx.NodeProto) -> bool:
    """Whether a node is self-contained: no subgraphs, and no external tensors."""
    attributes = node.attribute
    has_graph = any(attribute.HasField("g") or attribute.graphs for attribute in attributes)
    tensors = (tensor for attribute in attributes for tensor in (attribute.t, *attribute.tensors))
    return not has_graph and not any(map(uses_external_data, tensors))


def lacks_operands(model: onnx.ModelProto) -> bool:
    """
    Whether some node has too few operands, an operand that nothing before it defines, or, in ai.onnx.ml, invalid
    attributes.

    For some operators, ONNX's inference then reads out of bounds and ends the process.
    """
    opsets = {plain_domain(opset.domain): opset.version for opset in model.opset_import}
    if _graph_lacks(model.graph, opsets, set()):
        return True
    return any(_nodes_lack(function.node, opsets, set(function.input)) for function in model.functions)


def is_valid(node: onnx.NodeProto, domain: str, opsets: Mapping[str, int]) -> bool:
    """Whether the standard allows a node, regardless of its operands' types."""
    context = checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    try:
        context.opset_imports = dict(opsets)
        checker.check_node(_with_domain(node, domain), context)
    except (checker.ValidationError, TypeError):
        return False
    return True


def _graph_lacks(graph: onnx.GraphProto, opsets: Mapping[str, int], around: set[str]) -> bool:
    """`lacks_operands` for a graph that sees the names in `around`."""
    known = around | {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    return _nodes_lack(graph.node, opsets, known | {tensor.values.name for tensor in graph.sparse_initializer})


def _nodes_lack(nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int], known: set[str]) -> bool:
    """`lacks_operands` for nodes that see the names in `known`, and the results of nodes before them."""
    known = set(known)
    for node in nodes:
        domain = plain_domain(node.domain)
        schema = schema_of(domain, node.op_type, opsets.get(domain, 0))
        least = 0 if schema is None else schema.min_input
        if len(node.input) < least or not all(node.input[:least]):
            return True
        if domain == "ai.onnx.ml" and not is_valid(node, domain, opsets):
            return True
        if any(name and name not in known for name in node.input):
            return True
        if any(_graph_lacks(graph, opsets, known) for graph in graphs_of(node)):
            return True
        known.update(node.output)
    return False


def standard_function(
    node: onnx.NodeProto, domain: str, version: int, types: Sequence[onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """
    The body by which the standard defines a node's operator, given the types of its operands.

    `None` if there is none, or if the body needs an operator that cannot be imported either.
    """
    schema = schema_of(domain, node.op_type, version)
    if schema is None:
        return None
    if schema.has_function:
        chosen = _newest(schema.function_opset_versions, version)
        data = schema.get_function_with_opset_version(chosen)
    elif schema.has_context_dependent_function:
        chosen = _newest(schema.context_dependent_function_opset_versions, version)
        data = schema.get_context_dependent_function_with_opset_version(
            chosen, node.SerializeToString(), [type_.SerializeToString() for type_ in types]
        )
    else:
        return None
    function = onnx.FunctionProto.FromString(data)
    stated = {attribute.name for attribute in function.attribute_proto}
    defaults = (attribute.default_value for attribute in schema.attributes.values())
    function.attribute_proto.extend(value for value in defaults if value.name and value.name not in stated)
    opsets = {opset.domain: opset.version for opset in function.opset_import}
    complete = all(_is_defined(inner.domain, inner.op_type, opsets.get(inner.domain, 0)) for inner in function.node)
    return function if function.node and complete else None


def _newest(versions: Sequence[int], version: int) -> int:
    return max((known for known in versions if known <= version), default=min(versions))


def _is_defined(domain: str, kind: str, version: int) -> bool:
    """Whether an operator has an importer, or a body in the standard."""
    if find_importer(domain, kind, version) is not None:
        return True
    schema = schema_of(domain, kind, version)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def unknown_operator(domain: str, kind: str, opsets: Mapping[str, int]) -> str:
    """The label of an operator that cannot be imported; empty if it can be, or only lacks an opset import."""
    domain = plain_domain(domain)
    version = opsets.get(domain)
    is_known = has_importer(domain, kind) if version is None else _is_defined(domain, kind, version)
    return "" if is_known else refused_label(domain, kind)


def instantiate(function: onnx.FunctionProto, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The nodes of a function's body, with references to attributes replaced by the calling node's attributes."""
    given = {attribute.name: attribute for attribute in (*function.attribute_proto, *node.attribute)}
    return [_resolved(inner, given) for inner in function.node]


def _resolved(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name and attribute.ref_attr_name not in given:
            continue
        resolved = copy.attribute.add()
        resolved.CopyFrom(given[attribute.ref_attr_name] if attribute.ref_attr_name else attribute)
        resolved.name = attribute.name
        if resolved.HasField("g"):
            inner = [_resolved(item, given) for item in resolved.g.node]
            del resolved.g.node[:]
            resolved.g.node.extend(inner)
    return copy

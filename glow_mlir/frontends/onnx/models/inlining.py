"""Inline a model's local functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import onnx
from google.protobuf.message import DecodeError
from onnx import checker, inliner

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.onnx.models.domains import plain_domain
from glow_mlir.frontends.onnx.models.functions import find_importer, schema_of
from glow_mlir.frontends.onnx.models.order import node_name
from glow_mlir.frontends.onnx.models.traversal import all_nodes
from glow_mlir.support.dataclass import dataclass

MAX_EXPANDED = 1 << 17
"""The maximum number of nodes after expansion of functions: nested calls can multiply nodes exponentially."""

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    Inline a model's local functions; the result also imports the domains of its functions.

    Raises `ModelError` for more than `MAX_EXPANDED` nodes, and `UnsupportedError` for a call of a function whose
    operators differ between its opset and the model's.
    """
    if not model.functions:
        return model
    count = expanded_nodes(model)
    if count > MAX_EXPANDED:
        reason = f"the model's functions expand to {count} nodes, more than {MAX_EXPANDED}"
        raise ModelError(reason, hint="export the model with fewer nested function calls")
    try:
        found = inliner.inline_local_functions(_with_versions(_with_defaults(model)))
    except (RuntimeError, ValueError, DecodeError, checker.ValidationError) as error:
        reason = f"the model's functions cannot be inlined: {' '.join(str(error).split())}"
        raise ModelError(reason, hint="export the model without local functions") from error
    _check_calls(found, model)
    known = {plain_domain(opset.domain) for opset in found.opset_import}
    for opset in (opset for function in model.functions for opset in function.opset_import):
        if plain_domain(opset.domain) not in known:
            known.add(plain_domain(opset.domain))
            found.opset_import.append(opset)
    return found


def _with_versions(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    Let functions import the model's own opset versions if their operators are the same in both versions.

    The inliner does not inline functions with other versions.
    """
    versions = _versions(model)
    others = [
        (place, index, versions[domain])
        for place, function in enumerate(model.functions)
        for index, opset in enumerate(function.opset_import)
        if (domain := plain_domain(opset.domain)) in versions
        and opset.version != versions[domain]
        and _changed(function, domain, opset.version, versions[domain]) is None
    ]
    if not others:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for place, index, version in others:
        copy.functions[place].opset_import[index].version = version
    return copy


def _versions(body: onnx.ModelProto | onnx.FunctionProto) -> dict[str, int]:
    """The opset versions that a model or function imports, by domain."""
    return {plain_domain(opset.domain): opset.version for opset in body.opset_import}


def _changed(function: onnx.FunctionProto, domain: str, one: int, other: int) -> onnx.NodeProto | None:
    """The first node of a function whose operator differs between two versions of its domain."""
    nodes = (node for node in all_nodes(function.node) if plain_domain(node.domain) == domain)
    return next((node for node in nodes if not _is_same(domain, node.op_type, one, other)), None)


def _is_same(domain: str, kind: str, one: int, other: int) -> bool:
    """Whether an operator is the same in two versions: has the same schema, or without one the same importer."""
    schemas = [schema_of(domain, kind, version) for version in (one, other)]
    if all(schemas):
        return len({schema.since_version for schema in schemas}) == 1
    return find_importer(domain, kind, one) is find_importer(domain, kind, other)


def _check_calls(inlined: onnx.ModelProto, model: onnx.ModelProto) -> None:
    """Raise `UnsupportedError` if a call of a local function remains."""
    functions = {_key(item.domain, item.name, item.overload): item for item in model.functions}
    versions = _versions(model)
    for node in all_nodes(inlined.graph.node):
        if (function := functions.get(_called(node))) is None:
            continue
        for domain, version in _versions(function).items():
            known = versions.get(domain, version)
            if version != known and (changed := _changed(function, domain, version, known)) is not None:
                reason = f"function '{function.name}' imports opset {version} of '{domain or 'ai.onnx'}', and the model"
                reason += f" opset {known}, in which {changed.op_type} differs"
                raise UnsupportedError(reason, node=node_name(node), hint="export the function with the model's opset")


def _with_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """Add the default attributes of functions to calls that lack them."""
    if not any(item.attribute_proto for item in model.functions):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _Defaults(copy).fill()
    return copy


@dataclass
class _Defaults:
    """
    Add the default attributes of a model's functions to their calls.

    A call within a function may refer to attributes of that function, which its own caller may omit. For each set of
    attributes omitted at a call, the function gets a separate form.
    """

    model: onnx.ModelProto
    functions: dict[Key, onnx.FunctionProto] = field(default_factory=dict[Key, onnx.FunctionProto])
    forms: dict[tuple[Key, frozenset[str]], str] = field(default_factory=dict[tuple[Key, frozenset[str]], str])
    """Function and omitted attributes → the name of the form without them."""
    pending: list[tuple[onnx.FunctionProto, frozenset[str]]] = field(
        default_factory=list[tuple[onnx.FunctionProto, frozenset[str]]]
    )
    """Functions whose calls are still to be filled in, with the attributes that they have."""

    def fill(self) -> None:
        """Fill in the calls of the graph, then those of the functions and of their forms."""
        self.functions = {_key(item.domain, item.name, item.overload): item for item in self.model.functions}
        self.pending = [(item, _declared(item)) for item in self.model.functions]
        self._calls(self.model.graph.node, frozenset())
        while self.pending:
            function, bound = self.pending.pop()
            self._calls(function.node, bound)

    def _calls(self, nodes: Iterable[onnx.NodeProto], bound: frozenset[str]) -> None:
        """Fill in the calls among nodes; references to attributes outside `bound` are dropped."""
        for node in all_nodes(nodes):
            kept = [item for item in node.attribute if not item.ref_attr_name or item.ref_attr_name in bound]
            if len(kept) < len(node.attribute):
                del node.attribute[:]
                node.attribute.extend(kept)
            function = self.functions.get(_called(node))
            if function is None:
                continue
            given = {item.name for item in node.attribute}
            node.attribute.extend(item for item in function.attribute_proto if item.name not in given)
            if missing := frozenset(function.attribute) - given:
                node.op_type = self._form(function, missing)

    def _form(self, function: onnx.FunctionProto, missing: frozenset[str]) -> str:
        """The name of the form of a function without the `missing` attributes; adds it if it is new."""
        key = _key(function.domain, function.name, function.overload)
        if (key, missing) not in self.forms:
            form = self.model.functions.add()
            form.CopyFrom(function)
            form.name = f"{function.name}.without.{'.'.join(sorted(missing))}"
            self.forms[key, missing] = form.name
            self.pending.append((form, _declared(function) - missing))
        return self.forms[key, missing]


def _declared(function: onnx.FunctionProto) -> frozenset[str]:
    """The names of a function's attributes, with and without defaults."""
    return frozenset((*function.attribute, *(item.name for item in function.attribute_proto)))


def expanded_nodes(model: onnx.ModelProto) -> int:
    """The number of a model's nodes after inlining, including subgraphs; raises `ModelError` for recursion."""
    bodies = {_key(item.domain, item.name, item.overload): list(all_nodes(item.node)) for item in model.functions}
    counts: dict[Key, int] = {}
    open_: set[Key] = set()
    pending = list(bodies)
    while pending:
        current = pending[-1]
        called = [key for key in map(_called, bodies[current]) if key in bodies and key not in counts]
        if current in counts:
            pending.pop()
        elif called and current not in open_:
            open_.add(current)
            pending += dict.fromkeys(called)
        elif called:
            hint = "export the model without local functions"
            raise ModelError(f"function '{current[1]}' of the model calls itself", hint=hint)
        else:
            counts[current] = _count(bodies[current], counts)
            pending.pop()
    return _count(all_nodes(model.graph.node), counts)


def _count(nodes: Iterable[onnx.NodeProto], counts: Mapping[Key, int]) -> int:
    """The number of nodes; a call counts as many as its function has."""
    return sum(counts.get(_called(node), 1) for node in nodes)


def _called(node: onnx.NodeProto) -> Key:
    return _key(node.domain, node.op_type, node.overload)


def _key(domain: str, name: str, overload: str) -> Key:
    return plain_domain(domain), name, overload

"""Expansion of the functions that a model brings with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import onnx
from google.protobuf.message import DecodeError
from onnx import checker, inliner

from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.domains import plain_domain
from glow_mlir.frontends.onnx.traversal import all_nodes
from glow_mlir.support.dataclass import dataclass

MAX_EXPANDED = 1 << 17
"""Nodes of a model at most when its functions are expanded; those that call one another can make it any number."""

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    The model without functions of its own, which imports the domains that these import.

    Raises `ModelError` for more than `MAX_EXPANDED` nodes.
    """
    if not model.functions:
        return model
    count = expanded_nodes(model)
    if count > MAX_EXPANDED:
        reason = f"the model's functions expand to {count} nodes, more than {MAX_EXPANDED}"
        raise ModelError(reason, hint="export the model with fewer nested function calls")
    try:
        found = inliner.inline_local_functions(_with_defaults(model))
    except (RuntimeError, ValueError, DecodeError, checker.ValidationError) as error:
        reason = f"the model's functions cannot be inlined: {' '.join(str(error).split())}"
        raise ModelError(reason, hint="export the model without local functions") from error
    known = {plain_domain(opset.domain) for opset in found.opset_import}
    for opset in (opset for function in model.functions for opset in function.opset_import):
        if plain_domain(opset.domain) not in known:
            known.add(plain_domain(opset.domain))
            found.opset_import.append(opset)
    return found


def _with_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the defaults of its functions' attributes at the calls that give no others."""
    if not any(item.attribute_proto for item in model.functions):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _Defaults(copy).fill()
    return copy


@dataclass
class _Defaults:
    """
    Fills in the defaults of functions' attributes in a model.

    Whether a call within a function gives what it takes from the attributes of that function depends on who calls that:
    a function of which attributes without a default are missing at some call has a form of its own for it.
    """

    model: onnx.ModelProto
    functions: dict[Key, onnx.FunctionProto] = field(default_factory=dict[Key, onnx.FunctionProto])
    forms: dict[tuple[Key, frozenset[str]], str] = field(default_factory=dict[tuple[Key, frozenset[str]], str])
    """Function and attributes that are missing → the name of the form without them."""
    pending: list[tuple[onnx.FunctionProto, frozenset[str]]] = field(
        default_factory=list[tuple[onnx.FunctionProto, frozenset[str]]]
    )
    """Functions whose calls are not filled in yet, with the attributes that they have."""

    def fill(self) -> None:
        """Fill in the calls of the graph, then those of the functions and of their forms."""
        self.functions = {_key(item.domain, item.name, item.overload): item for item in self.model.functions}
        self.pending = [(item, _declared(item)) for item in self.model.functions]
        self._calls(self.model.graph.node, frozenset())
        while self.pending:
            function, bound = self.pending.pop()
            self._calls(function.node, bound)

    def _calls(self, nodes: Iterable[onnx.NodeProto], bound: frozenset[str]) -> None:
        """Fill in the calls among nodes, where the attributes `bound` may be referred to."""
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
        """The name of the form of a function without some of its attributes."""
        key = _key(function.domain, function.name, function.overload)
        if (key, missing) not in self.forms:
            form = self.model.functions.add()
            form.CopyFrom(function)
            form.name = f"{function.name}.without.{'.'.join(sorted(missing))}"
            self.forms[key, missing] = form.name
            self.pending.append((form, _declared(function) - missing))
        return self.forms[key, missing]


def _declared(function: onnx.FunctionProto) -> frozenset[str]:
    """The names of the attributes of a function, with defaults and without."""
    return frozenset((*function.attribute, *(item.name for item in function.attribute_proto)))


def expanded_nodes(model: onnx.ModelProto) -> int:
    """The nodes of a model, graphs inside of nodes included, with the bodies of its functions in place of calls."""
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
    """The number of nodes, with what is counted of functions in place of calls."""
    return sum(counts.get(_called(node), 1) for node in nodes)


def _called(node: onnx.NodeProto) -> Key:
    return _key(node.domain, node.op_type, node.overload)


def _key(domain: str, name: str, overload: str) -> Key:
    return plain_domain(domain), name, overload

"""Expansion of the functions that a model brings with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx
from google.protobuf.message import DecodeError
from onnx import checker, inliner

from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.walk import all_nodes

MOST_EXPANDED = 1 << 17
"""Nodes of a model at most when its functions are expanded; those that call one another can make it any number."""

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without functions of its own; raises `ModelError` for more than `MOST_EXPANDED` nodes."""
    if not model.functions:
        return model
    count = expanded_nodes(model)
    if count > MOST_EXPANDED:
        reason = f"the model's functions expand to {count} nodes, more than {MOST_EXPANDED}"
        raise ModelError(reason, hint="export the model without functions that call one another so often")
    try:
        return inliner.inline_local_functions(_with_defaults(model))
    except (RuntimeError, ValueError, DecodeError, checker.ValidationError) as error:
        reason = f"the model's functions cannot be inlined: {' '.join(str(error).split())}"
        raise ModelError(reason, hint="export the model without functions of its own") from error


def _with_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the defaults of its functions' attributes at the calls that give no others."""
    defaults = {_key(item.domain, item.name, item.overload): item.attribute_proto for item in model.functions}
    if not any(defaults.values()):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for body in (copy.graph.node, *(function.node for function in copy.functions)):
        for node in all_nodes(body):
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(item for item in defaults.get(_called(node), ()) if item.name not in given)
    return copy


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
            hint = "export the model without functions of its own"
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
    return "" if domain == "ai.onnx" else domain, name, overload

"""Mistakes in a model that other engines tolerate: repair the model, and report what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import onnx
from onnx import defs, helper

from glow_mlir.frontends.onnx.models.domains import STANDARD, plain_domain
from glow_mlir.frontends.onnx.models.doubts import AS_IN_ONNXRUNTIME, Doubt
from glow_mlir.frontends.onnx.models.functions import has_importer, is_valid, newest_importer
from glow_mlir.frontends.onnx.models.order import first_late, node_name, topological
from glow_mlir.frontends.onnx.models.traversal import all_graphs, all_nodes, graphs_inside
from glow_mlir.support.dataclass import dataclass

EARLY = frozenset(
    {
        "Affine",
        "Crop",
        "ImageScaler",
        "LayerNormalization",
        "MeanVarianceNormalization",
        "ParametricSoftplus",
        "Scale",
        "ScaledTanh",
        "ThresholdedRelu",
    }
)
"""Operators of ONNX's own domain that onnxruntime accepts in opsets where the standard does not define them."""


@dataclass(frozen=True)
class Assumption:
    """A mistake in a model: the doubt to report, and a function that repairs the model in place."""

    doubt: Doubt
    mend: Callable[[], None]


def assume(model: onnx.ModelProto, is_own: bool) -> tuple[onnx.ModelProto, tuple[Doubt, ...]]:
    """
    Repair a model; return it with the doubts to report.

    The model is changed in place if it `is_own`; otherwise it is copied if it has mistakes.
    """
    if not is_own:
        if all(next(iter(find(model)), None) is None for find in _ASSUMPTIONS):
            return model, ()
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        model = copy
    doubts: list[Doubt] = []
    for find in _ASSUMPTIONS:
        found = list(find(model))
        for assumption in found:
            assumption.mend()
        # One line for each kind: most files with such a mistake have it in many places.
        if found:
            first = found[0].doubt
            first.times = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
            doubts.append(first)
    return model, tuple(doubts)


def _bodies(model: onnx.ModelProto) -> Iterator[tuple[Any, str]]:
    """The graph and its inner graphs, then the functions and their inner graphs, each with its name for errors."""
    for graph in all_graphs(model.graph):
        yield graph, "the graph" if graph is model.graph else f"graph '{graph.name}'"
    for function in model.functions:
        yield function, f"function '{function.name}'"
        for graph in graphs_inside(function.node):
            yield graph, f"graph '{graph.name}'"


# ---- names


def _unnamed_graphs(model: onnx.ModelProto) -> Iterator[Assumption]:
    def named(graph: onnx.GraphProto) -> Callable[[], None]:
        return lambda: setattr(graph, "name", "graph")

    for body, _ in _bodies(model):
        if not body.name and isinstance(body, onnx.GraphProto):
            hint = "the standard requires one"
            yield Assumption(Doubt("a graph has no name", "it is called 'graph'", hint=hint), named(body))


def _repeated_constants(model: onnx.ModelProto) -> Iterator[Assumption]:
    """Constants that share a name: the last one is used, in the order initializers, nodes, sparse initializers."""
    graph = model.graph
    constants = [node for node in graph.node if node.op_type == "Constant" and not plain_domain(node.domain)]
    groups: tuple[tuple[Any, list[Any], Callable[[Any], str]], ...] = (
        (graph.initializer, list(graph.initializer), lambda item: item.name),
        (graph.node, constants, lambda item: item.output[0] if item.output else ""),
        (graph.sparse_initializer, list(graph.sparse_initializer), lambda item: item.values.name),
    )
    given: dict[str, list[tuple[Any, Any]]] = {}
    for container, items, name_of in groups:
        for item in items:
            given.setdefault(name_of(item), []).append((container, item))
    for name, found in given.items():
        if name and len(found) > 1:
            hint = "give each value a name of its own"
            reason = f"constant '{name}' is defined {_times(len(found))}"
            yield Assumption(Doubt(reason, "the last value is used", hint=hint), _keeper_of_last(graph, found))


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def _keeper_of_last(graph: onnx.GraphProto, found: Sequence[tuple[Any, Any]]) -> Callable[[], None]:
    def mend() -> None:
        *others, (container, last) = found
        for around, item in others:
            _remove(around, item)
        if container is graph.node:  # Nodes that used one of the others are before it.
            copy = onnx.NodeProto()
            copy.CopyFrom(last)
            _remove(container, last)
            container.insert(0, copy)

    return mend


def _remove(container: Any, item: Any) -> None:
    """Remove this item, not one that is merely equal to it."""
    del container[next(place for place, other in enumerate(container) if other is item)]


def _repeated_outputs(model: onnx.ModelProto) -> Iterator[Assumption]:
    graph = model.graph
    listed: dict[str, list[onnx.ValueInfoProto]] = {}
    for output in graph.output:
        listed.setdefault(output.name, []).append(output)
    taken: set[str] | None = None
    for name, (_, *others) in listed.items():
        if not name or not others:
            continue
        taken = taken if taken is not None else _names(graph)
        fresh: list[str] = []
        for _ in others:
            fresh.append(next(new for n in range(2, len(taken) + 3) if (new := f"{name}.{n}") not in taken))
            taken.add(fresh[-1])
        names = ", ".join(f"'{new}'" for new in fresh[:3]) + (", …" if len(fresh) > 3 else "")
        assumed = f"the second one is called {names}" if len(fresh) == 1 else f"the others are called {names}"
        reason, hint = f"output '{name}' is listed {_times(len(fresh) + 1)}", "give each its own name, with an Identity"
        yield Assumption(Doubt(reason, assumed, hint=hint), _copier(graph, others, fresh))


def _copier(graph: onnx.GraphProto, outputs: Sequence[onnx.ValueInfoProto], names: Sequence[str]) -> Callable[[], None]:
    def mend() -> None:
        for output, name in zip(outputs, names, strict=True):
            graph.node.append(helper.make_node("Identity", [output.name], [name]))
            output.name = name

    return mend


def _names(graph: onnx.GraphProto) -> set[str]:
    """All names used in a graph and in its inner graphs."""
    found: set[str] = set()
    for inner in all_graphs(graph):
        found.update(value.name for value in (*inner.input, *inner.output, *inner.initializer))
        found.update(name for node in inner.node for name in node.output)
        found.update(tensor.values.name for tensor in inner.sparse_initializer)
    return found


def _sparse_values(model: onnx.ModelProto) -> Iterator[Assumption]:
    """Constants whose `value` is sparse; the standard requires `sparse_value`."""
    for body, _ in _bodies(model):
        for node in body.node:
            if node.op_type != "Constant" or plain_domain(node.domain):
                continue
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
                    doubt = Doubt("Constant: its value is sparse", "it is taken as sparse_value", node=node_name(node))
                    yield Assumption(doubt, _renamer(attribute, "sparse_value"))


def _renamer(item: Any, name: str) -> Callable[[], None]:
    return lambda: setattr(item, "name", name)


# ---- domains and versions


def _missing_imports(model: onnx.ModelProto) -> Iterator[Assumption]:
    """Domains whose operators are used although no version of the domain is imported."""
    if not model.opset_import:
        return  # Models of the first IR versions import nothing.
    own = {plain_domain(function.domain) for function in model.functions}
    imported = {plain_domain(opset.domain): opset.version for opset in model.opset_import}
    for body, nodes, where in _importing(model):
        here = {plain_domain(opset.domain) for opset in body.opset_import}
        used: dict[str, list[onnx.NodeProto]] = {}
        for node in all_nodes(nodes):
            if (domain := plain_domain(node.domain)) not in here:
                used.setdefault(domain, []).append(node)
        for domain, users in used.items():
            if domain in own or any(has_importer(domain, node.op_type) for node in users):
                version = imported.get(domain) or _version(domain, users, imported)
                label = domain or "ai.onnx"
                reason = f"{users[0].op_type}: {where} imports no version of opset '{label}'"
                hint = "name the version in opset_import"
                doubt = Doubt(reason, f"{version} is assumed", node=node_name(users[0]), hint=hint)
                yield Assumption(doubt, _importer(body, domain, version))


def _importing(model: onnx.ModelProto) -> Iterator[tuple[Any, Sequence[onnx.NodeProto], str]]:
    """The model and each of its functions, which import opsets: with its nodes and its name for errors."""
    yield model, model.graph.node, "the model"
    for function in model.functions:
        yield function, function.node, f"function '{function.name}'"


def _importer(body: Any, domain: str, version: int) -> Callable[[], None]:
    return lambda: body.opset_import.append(helper.make_opsetid(domain, version))


def _version(domain: str, nodes: Iterable[onnx.NodeProto], imported: dict[str, int]) -> int:
    """The newest version of a domain in which all of these nodes are valid."""
    if domain not in STANDARD:
        return newest_importer(domain)
    newest = max((schema.since_version for schema in defs.get_all_schemas() if schema.domain == domain), default=1)
    for version in range(newest, 0, -1):
        opsets = {**imported, domain: version}
        if all(_exists(domain, node, version) and is_valid(node, domain, opsets) for node in nodes):
            return version
    return newest


def _exists(domain: str, node: onnx.NodeProto, version: int) -> bool:
    """Whether a version of the standard has an operator and does not deprecate it."""
    has = defs.has(node.op_type, version, domain)
    return has and not defs.get_schema(node.op_type, version, domain).deprecated


def _early_operators(model: onnx.ModelProto) -> Iterator[Assumption]:
    """Operators of `EARLY` in opsets that do not have them; they are left unchanged."""
    for body, nodes, where in _importing(model):
        version = next((opset.version for opset in body.opset_import if not plain_domain(opset.domain)), 1)
        for node in all_nodes(nodes):
            kind = node.op_type
            if kind in EARLY and not plain_domain(node.domain) and not defs.has(kind, version):
                first = min((s.since_version for s in defs.get_all_schemas_with_history() if s.name == kind), default=0)
                place = f"of opset {first}, and {where} imports opset {version}" if first else "in no opset"
                doubt = Doubt(f"{kind}: it is {place}", AS_IN_ONNXRUNTIME, node=node_name(node))
                yield Assumption(doubt, lambda: None)


# ---- order


def _unsorted_nodes(model: onnx.ModelProto) -> Iterator[Assumption]:
    """Nodes that precede a node they depend on; the import refuses cycles."""
    # Inner graphs first: sorting the outer nodes copies them.
    for body, where in reversed(list(_bodies(model))):
        late = first_late(body.node)
        order = None if late is None else topological(body.node)
        if late is None or order is None:
            continue
        user, giver = (node_name(body.node[index]) for index in late)
        reason = f"the nodes of {where} are not sorted, '{giver}' computes an operand of '{user}' and comes later"
        doubt = Doubt(reason, "they are sorted", hint="each node must follow the nodes it depends on")
        yield Assumption(doubt, _sorter(body, order))


def _sorter(body: Any, order: Sequence[int]) -> Callable[[], None]:
    def mend() -> None:
        nodes = list(body.node)
        copies = [onnx.NodeProto.FromString(nodes[index].SerializeToString()) for index in order]
        del body.node[:]
        body.node.extend(copies)

    return mend


_ASSUMPTIONS: Sequence[Callable[[onnx.ModelProto], Iterator[Assumption]]] = (
    _unnamed_graphs,
    _repeated_constants,
    _repeated_outputs,
    _sparse_values,
    _missing_imports,
    _early_operators,
    _unsorted_nodes,
)
"""Functions that each find one kind of mistake; those that move nodes come last."""

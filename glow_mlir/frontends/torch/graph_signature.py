"""Properties of a traced graph: the inputs that it changes, those that are used, and the outputs that it computes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from glow_mlir.frontends.torch.traced_graph import (
    Argument,
    Expression,
    Reference,
    TracedGraph,
    TracedNode,
    TracedTensor,
)

COPY_INTO = "aten.copy_.default"
"""The only operator of a functional graph that changes an input."""


HARMLESS = ("operator.", "math.", "aten.sym_", "sym_", "torch.sym_", "attribute")
"""Prefixes of operators on numbers, and of those that state facts about sizes."""

CHECKS = ("aten._assert_scalar.default", "aten._assert_tensor_metadata.default")
"""Checks of assumptions made in tracing, which guards check as well."""


def has_effects(node: TracedNode) -> bool:
    """Whether a node has no results, so that it is called only for its effects."""
    if any(result is not None for result in node.results) or node.target in (COPY_INTO, *CHECKS):
        return False
    return not node.target.startswith(HARMLESS)


def changed_inputs(graph: TracedGraph) -> dict[str, Argument]:
    """The inputs that a graph changes → their new values."""
    return {
        node.arguments[0].name: node.arguments[1]
        for node in graph.nodes
        if node.target == COPY_INTO and isinstance(node.arguments[0], Reference)
    }


def symbols_of(value: object) -> frozenset[str]:
    """The symbols in a number, in sizes and strides of a tensor, or in a tuple of these."""
    if isinstance(value, tuple):
        return frozenset(symbol for item in cast("tuple[object, ...]", value) for symbol in symbols_of(item))
    all_sizes = (*value.sizes, *value.strides) if isinstance(value, TracedTensor) else (value,)
    return frozenset(symbol for size in all_sizes if isinstance(size, Expression) for symbol in size.symbols)


def _given_symbols(graph: TracedGraph) -> list[str]:
    """The symbols in inputs or their sizes, and those derived from them."""
    found = dict.fromkeys(symbol for item in graph.inputs for symbol in sorted(symbols_of(item.value)))
    for name, item in graph.derived.items():
        if item.symbols <= found.keys():
            found[name] = None
    return list(found)


def input_symbols(graph: TracedGraph) -> list[str]:
    """The sizes that inputs determine; all others depend on data."""
    return [symbol for symbol in _given_symbols(graph) if symbol in graph.symbols]


def binders(graph: TracedGraph) -> dict[str, str]:
    """Symbol that depends on data → the node that computes its value."""
    given = {*_given_symbols(graph), *graph.derived}
    found: dict[str, str] = {}
    for node in graph.nodes:
        for symbol in sorted(symbols_of(node.results) - given):
            found.setdefault(symbol, node.name)
    return found


READS = ("aten._local_scalar_dense.default", "aten.item.default")
"""Operators whose result is a number, an element of a tensor."""


def reads_data(node: TracedNode) -> bool:
    """Whether a node reads a number from a tensor, or checks one that is known only then."""
    if node.target == "aten._assert_scalar.default":
        return not isinstance(node.arguments[0], bool | int)
    return node.target in READS


def symbol_axes(graph: TracedGraph) -> Iterable[tuple[str, int, int]]:
    """Symbols that are the size of an input's axis: their names, and the positions of input and axis."""
    for position, item in enumerate(graph.inputs):
        for axis, size in enumerate(item.value.sizes if isinstance(item.value, TracedTensor) else ()):
            if isinstance(size, Expression) and size.word == "symbol":
                yield str(size.value), position, axis


def references(argument: Argument) -> Iterable[Reference]:
    """The references in an argument."""
    if isinstance(argument, Reference):
        yield argument
    elif isinstance(argument, tuple):
        for item in argument:
            yield from references(item)


def read_by(node: TracedNode) -> list[Reference]:
    """The values that a node reads."""
    return [found for item in (*node.arguments, *node.keywords.values()) for found in references(item)]


def used_names(graph: TracedGraph) -> set[str]:
    """The names of nodes and inputs that are used by nodes, computed outputs or sizes."""
    arguments = [item for node in graph.nodes for item in (*node.arguments, *node.keywords.values())]
    found = {found.name for item in (*arguments, *computed_outputs(graph)) for found in references(item)}
    return found.union(graph.size_inputs)


def computed_outputs(graph: TracedGraph) -> list[Reference]:
    """The output tensors that nodes compute, without duplicates, in order; views of inputs are excluded."""
    inputs = {item.name for item in graph.inputs}
    values, changed = graph.values, changed_inputs(graph)

    def is_computed(item: Reference) -> bool:
        value = values[item.name][item.index]
        return isinstance(value, TracedTensor) and (value.view is None or value.view[0] in changed)

    found = (item for item in graph.outputs if isinstance(item, Reference) and item.name not in inputs)
    return list(dict.fromkeys(filter(is_computed, found)))


def output_name(reference: Reference) -> str:
    """The default name of an output, after its node."""
    return f"{reference.name}.{reference.index}" if reference.index else reference.name

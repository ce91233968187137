"""Split graphs into compiled segments and operators that PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import torch
from torch import fx

from glow_mlir.frontends.torch.graph_signature import COPY_INTO, binders, read_by, references, symbols_of
from glow_mlir.frontends.torch.traced_graph import (
    ATTRIBUTE,
    CONSTANT,
    Argument,
    Expression,
    Reference,
    TracedGraph,
    TracedInput,
    TracedNode,
    TracedTensor,
    TracedValue,
)
from glow_mlir.support.dataclass import dataclass
from glow_mlir.torch.numbers import SymbolReader, evaluated, symbols_in
from glow_mlir.torch.safety_net import OF_PYTORCH, Call
from glow_mlir.torch.tensors import in_strides, listed


@dataclass(frozen=True)
class Segment:
    """Some nodes of a graph, which depend only on earlier segments; PyTorch computes `is_eager` ones."""

    nodes: tuple[TracedNode, ...]
    is_eager: bool


def segments_of(graph: TracedGraph, eager: Mapping[str, str]) -> list[Segment]:
    """Group the nodes into as few segments as possible, with `eager` ones apart: even levels are compiled."""
    levels: dict[str, int] = {}
    for node in graph.nodes:
        is_eager = node.name in eager or node.target == COPY_INTO
        used = {found.name for found in read_by(node)}
        below = [levels[name] + (levels[name] % 2 != is_eager) for name in used if name in levels]
        levels[node.name] = max([int(is_eager), *below])
    last = max(levels.values(), default=0)
    for node in graph.nodes:
        if node.target == COPY_INTO:  # Readers of the old value have to come first.
            levels[node.name] = last + (last + 1) % 2
    found = [
        Segment(tuple(node for node in graph.nodes if levels[node.name] == level), bool(level % 2))
        for level in range(max(levels.values(), default=0) + 1)
    ]
    return [segment for segment in found if segment.nodes]


BODIES = frozenset(f"torch.ops.higher_order.{name}" for name in ("cond", "while_loop", "scan", "map_impl"))
"""Operators that PyTorch computes by calls of graphs, their bodies, which are compiled."""

Step = Callable[[dict[Reference, Any], dict[str, Any]], None]
"""Adds results to the known values, and the symbols that they determine to the known numbers."""


class SegmentedCall:
    """Run the segments of a graph one after the other."""

    def __init__(
        self,
        graph: TracedGraph,
        nodes: Mapping[str, fx.Node],
        eager: Mapping[str, str],
        compile_: Callable[[TracedGraph], Call],
        compile_body: Callable[[fx.GraphModule], Callable[..., Any]],
    ) -> None:
        """
        `nodes` are the nodes of PyTorch's graph by name; `compile_` compiles a part, `compile_body` a graph that is an
        argument of an operator.
        """
        self._graph = graph
        self._reader = SymbolReader(graph)
        self._values = graph.values
        self._binders = binders(graph)
        bodies = {found for node in graph.nodes if node.target in BODIES for found in read_by(node)}
        self._attributes: dict[Reference, Any] = {}
        for node in graph.nodes:
            if node.target in (ATTRIBUTE, CONSTANT):
                own = nodes[node.name]
                value = attrgetter(str(own.target))(own.graph.owning_module)
                is_body = Reference(node.name) in bodies and isinstance(value, fx.GraphModule)
                self._attributes[Reference(node.name)] = compile_body(value) if is_body else value
        self._steps: list[Step] = []
        segments = segments_of(graph, eager)
        for number, segment in enumerate(segments):
            if segment.is_eager:
                own = [node for node in segment.nodes if Reference(node.name) not in self._attributes]
                self._steps += [self._eager_step(node, nodes[node.name]) for node in own]
            else:
                self._steps.append(self._compiled_step(segment, segments[number + 1 :], compile_))

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """The outputs of the graph."""
        known: dict[Reference, Any] = dict(self._attributes)
        known |= {Reference(item.name): value for item, value in zip(self._graph.inputs, inputs, strict=True)}
        numbers = self._reader.of(inputs)
        for step in self._steps:
            step(known, numbers)
        return [self._found(item, known, numbers) for item in self._graph.outputs]

    def _found(self, item: Argument, known: Mapping[Reference, Any], numbers: Mapping[str, int]) -> Any:
        if isinstance(item, Reference):
            return known[item] if item in known else evaluated(self._values[item.name][item.index], numbers)
        if isinstance(item, tuple):
            return tuple(self._found(part, known, numbers) for part in item)
        return evaluated(item, numbers)

    def _eager_step(self, traced: TracedNode, node: fx.Node) -> Step:
        """Return a step in which PyTorch computes a node."""
        bound = self._bound_by((traced,))

        def step(known: dict[Reference, Any], numbers: dict[str, Any]) -> None:
            def resolved(given: Any, item: Argument) -> Any:
                if isinstance(item, tuple):
                    parts = (resolved(one, other) for one, other in zip(given, item, strict=True))
                    return tuple(parts) if isinstance(given, tuple) else list(parts)
                is_computed = isinstance(given, fx.Node) or isinstance(item, Expression)
                return self._found(item, known, numbers) if is_computed else given

            pairs = zip(cast("Sequence[Any]", node.args), traced.arguments, strict=True)
            arguments = [resolved(given, item) for given, item in pairs]
            keywords = {name: resolved(node.kwargs[name], item) for name, item in traced.keywords.items()}
            try:
                result: Any = cast("Any", node.target)(*arguments, **keywords)
            except Exception as error:
                error.add_note(f"{OF_PYTORCH} {traced.target} ({traced.location or traced.name})")
                raise
            # If PyTorch does not record several results, the users that select one imply them.
            given = listed(result) if isinstance(node.meta.get("val"), tuple | list) else [result]
            results = [_as_traced(item, value) for item, value in zip(given, traced.results, strict=True)]
            known.update({Reference(traced.name, index): item for index, item in enumerate(results)})
            if bound:
                for value, item in zip(traced.results, results, strict=True):
                    numbers |= symbols_in(value, item)
                self._reader.derive(numbers)

        return step

    def _compiled_step(
        self, segment: Segment, later: Sequence[Segment], compile_: Callable[[TracedGraph], Call]
    ) -> Step:
        """Return a step that runs a segment as machine code."""
        own = {node.name for node in segment.nodes}
        read = [found for node in segment.nodes for found in read_by(node) if found.name not in own]
        inputs = [item for item in dict.fromkeys(read) if self._is_tensor(item)]
        wanted = [found for part in later for node in part.nodes for found in read_by(node)]
        wanted += [found for item in self._graph.outputs for found in references(item)]
        outputs = [item for item in dict.fromkeys(wanted) if item.name in own and self._is_tensor(item)]
        bound = self._bound_by(segment.nodes)
        part = self._part(segment, inputs, outputs, bound)
        symbols = [item.value.value for item in part.inputs if isinstance(item.value, Expression)]
        call = compile_(part)

        def step(known: dict[Reference, Any], numbers: dict[str, Any]) -> None:
            found = call([known[item] for item in inputs] + [numbers[str(symbol)] for symbol in symbols])
            known.update(zip(outputs, found, strict=False))
            if bound:
                numbers.update(zip(bound, found[len(outputs) :], strict=True))
                self._reader.derive(numbers)

        return step

    def _bound_by(self, nodes: Iterable[TracedNode]) -> list[str]:
        """The symbols whose values nodes compute."""
        names = {node.name for node in nodes}
        return [symbol for symbol, name in self._binders.items() if name in names]

    def _is_tensor(self, item: Reference) -> bool:
        return isinstance(self._value(item), TracedTensor)

    def _value(self, item: Reference) -> TracedValue:
        return self._values[item.name][item.index]

    def _part(
        self, segment: Segment, inputs: Sequence[Reference], outputs: Sequence[Reference], bound: Sequence[str]
    ) -> TracedGraph:
        """
        A segment as a graph of its own, whose inputs are the values it takes from others.

        Its last outputs are the values of the symbols `bound` by its nodes; symbols derived from these are its own.
        """
        names = {item: f"{item.name}_{item.index}" if item.index else item.name for item in inputs}

        def renamed(item: Argument) -> Argument:
            if isinstance(item, Reference):
                if item in names:
                    return Reference(names[item])
                value = self._value(item)
                return item if isinstance(value, TracedTensor) or value is None else value
            return tuple(map(renamed, item)) if isinstance(item, tuple) else item

        nodes = tuple(
            TracedNode(
                node.name,
                node.target,
                tuple(map(renamed, node.arguments)),
                {name: renamed(item) for name, item in node.keywords.items()},
                tuple(map(_without_view, node.results)),
                node.location,
            )
            for node in segment.nodes
        )
        tensors = [TracedInput(names[item], _tensor(_without_view(self._value(item)))) for item in inputs]
        used = _symbols_in(nodes, tensors)
        derived: dict[str, Expression] = {}
        for name, item in self._graph.derived.items():
            if name in used and not item.symbols.isdisjoint((*bound, *derived)):
                derived[name] = item
                used |= item.symbols
        symbols = {name: bounds for name, bounds in self._graph.symbols.items() if name in used}
        given = [name for name in symbols if name not in bound and name not in derived]
        numbers = [TracedInput(f"{name}.number", Expression("symbol", value=name)) for name in given]
        found = [Expression("symbol", value=name) for name in bound]
        return TracedGraph((*tensors, *numbers), nodes, (*outputs, *found), symbols, derived)


def _symbols_in(nodes: Sequence[TracedNode], inputs: Sequence[TracedInput]) -> set[str]:
    """The symbols that occur in nodes and inputs."""
    values = [item.value for item in inputs] + [value for node in nodes for value in node.results]
    arguments = [item for node in nodes for item in (*node.arguments, *node.keywords.values())]
    offsets = [value.offset for value in values if isinstance(value, TracedTensor)]
    return {symbol for item in (*values, *arguments, *offsets) for symbol in symbols_of(item)}


def _as_traced(value: Any, traced: TracedValue) -> Any:
    """A tensor with the traced strides; an operator may return other strides than it declares."""
    if not isinstance(value, torch.Tensor) or not isinstance(traced, TracedTensor) or not traced.strides:
        return value
    is_fixed = not any(isinstance(size, Expression) for size in (*traced.sizes, *traced.strides))
    if is_fixed and value.stride() != traced.hint[1] and value.numel():
        return in_strides(value.contiguous(), *traced.hint)
    return value


def _without_view(value: TracedValue) -> TracedValue:
    """The tensor without its relation to an input."""
    if not isinstance(value, TracedTensor):
        return value
    return TracedTensor(value.dtype, value.sizes, value.strides, value.hint)


def _tensor(value: TracedValue) -> TracedTensor:
    assert isinstance(value, TracedTensor)
    return value

"""The results of a graph: computed tensors, views of inputs, numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from glow_mlir.frontends.torch.graph_signature import computed_outputs
from glow_mlir.frontends.torch.traced_graph import Expression, Reference, TracedGraph, TracedSize, TracedTensor
from glow_mlir.torch.numbers import SymbolReader, evaluated

Made = Callable[[Sequence[Any], Sequence[torch.Tensor], Mapping[str, int]], Any]
"""Makes one output from the inputs, the computed tensors, and the values of symbols."""


class Outputs:
    """Assemble the results of a graph from its inputs and the computed tensors, in order."""

    def __init__(self, graph: TracedGraph) -> None:
        self._positions = {item.name: position for position, item in enumerate(graph.inputs)}
        self._computed = {item: position for position, item in enumerate(computed_outputs(graph))}
        self._values = graph.values
        self._reader = SymbolReader(graph) if graph.symbols else None
        self._makers = [self._maker(item) for item in graph.outputs]
        self._are_computed = list(self._computed) == list(graph.outputs)

    def numbers(self, inputs: Sequence[Any]) -> Mapping[str, int]:
        """The values of symbols for these inputs."""
        return {} if self._reader is None else self._reader.of(inputs)

    def derive(self, numbers: dict[str, Any]) -> None:
        """Add the symbols derived from numbers that are known by now."""
        if self._reader is not None:
            self._reader.derive(numbers)

    def of(self, inputs: Sequence[Any], computed: list[torch.Tensor], numbers: Mapping[str, int]) -> list[Any]:
        """The outputs; may be the list `computed` itself."""
        if self._are_computed:
            return computed
        return [make(inputs, computed, numbers) for make in self._makers]

    def _maker(self, item: Any) -> Made:
        if not isinstance(item, Reference):
            return lambda _, __, numbers: evaluated(item, numbers)
        if item.name in self._positions:
            position = self._positions[item.name]
            return lambda inputs, _, __: inputs[position]
        if item in self._computed:
            number = self._computed[item]
            return lambda _, computed, __: computed[number]
        value = self._values[item.name][item.index]
        if isinstance(value, TracedTensor) and value.view is not None:
            return self._view(value, self._positions[value.view[0]], value.view[1])
        return lambda _, __, numbers: evaluated(value, numbers)

    def _view(self, value: TracedTensor, position: int, offset: TracedSize) -> Made:
        """A view of an input."""
        if isinstance(offset, int) and not _has_expressions(value):
            sizes, strides = value.hint

            def static(inputs: Sequence[Any], _: object, __: object) -> torch.Tensor:
                whole: torch.Tensor = inputs[position]
                return whole.as_strided(sizes, strides, whole.storage_offset() + offset)

            return static

        def sized(inputs: Sequence[Any], _: object, numbers: Mapping[str, int]) -> torch.Tensor:
            whole: torch.Tensor = inputs[position]
            own = [tuple(evaluated(size, numbers) for size in item) for item in (value.sizes, value.strides)]
            return whole.as_strided(own[0], own[1], whole.storage_offset() + evaluated(offset, numbers))

        return sized


def _has_expressions(value: TracedTensor) -> bool:
    return any(isinstance(size, Expression) for size in (*value.sizes, *value.strides))

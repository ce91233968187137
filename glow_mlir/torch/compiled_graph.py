"""A traced graph that is compiled when it is first called, on tensors of PyTorch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from glow_mlir.api.model_session import ModelSession
from glow_mlir.errors import GlowError
from glow_mlir.frontends.torch.graph_facts import computed_outputs, output_name
from glow_mlir.frontends.torch.layouts import memory_order
from glow_mlir.frontends.torch.model import TracedModel
from glow_mlir.frontends.torch.traced_graph import Reference, TracedGraph, TracedTensor
from glow_mlir.torch.graph_reports import GraphReport, new_graph
from glow_mlir.torch.tensors import array_of, dtype_named, tensor_of

Call = Callable[[list[Any]], list[Any]]
"""Computes the outputs of a graph of its inputs."""


class ArrayCall:
    """Calls of a session on arrays that share the elements of tensors."""

    def __init__(self, graph: TracedGraph, session: ModelSession) -> None:
        self._graph = graph
        self._session = session
        names = {argument.name for argument in session.first.inputs}
        self._inputs = [
            (place, item.name, memory_order(*item.value.hint))
            for place, item in enumerate(graph.inputs)
            if isinstance(item.value, TracedTensor) and item.name in names
        ]

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """The outputs, tensors in the strides that PyTorch traced."""
        given = {name: array_of(inputs[place], order) for place, name, order in self._inputs}
        found = self._session.run(given)
        places = {item.name: place for place, item in enumerate(self._graph.inputs)}
        values = self._graph.values
        outputs: list[Any] = []
        for item in self._graph.outputs:
            if not isinstance(item, Reference):
                outputs.append(item)
            elif item.name in places:
                outputs.append(inputs[places[item.name]])
            else:
                traced = values[item.name][item.index]
                assert isinstance(traced, TracedTensor)
                array = found[output_name(item)]
                outputs.append(tensor_of(array, dtype_named(traced.dtype)).as_strided(*traced.hint))
        return outputs


class CompiledGraph:
    """
    A graph as PyTorch calls it: with a list of tensors, which it may clear.

    It is compiled when it is first called.
    """

    def __init__(self, graph: TracedGraph, phase: str, options: Mapping[str, Any]) -> None:
        self._graph = graph
        self._options = dict(options)
        self._call: Call | None = None
        self._lock = threading.Lock()
        first = next((str(node.place) for node in graph.nodes if node.place.file), "")
        self.report: GraphReport = new_graph(phase, len(graph.nodes), first)

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """The outputs of the graph; raises `GlowError` where it is not supported, or fails."""
        given = list(inputs)
        inputs.clear()
        call = self._call
        if call is None:
            with self._lock:
                call = self._call or self._compiled()
                self._call = call
        self.report.calls += 1
        return call(given)

    def boxed(self) -> Call:
        """The graph as a function that is marked as one that takes a list."""

        def call(inputs: list[Any]) -> list[Any]:
            return self(inputs)

        call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return call

    def _compiled(self) -> Call:
        start = time.perf_counter()
        session = ModelSession.of(TracedModel(self._graph), **self._options)
        self.report.compilations += 1
        self.report.compile_seconds += time.perf_counter() - start
        return ArrayCall(self._graph, session)

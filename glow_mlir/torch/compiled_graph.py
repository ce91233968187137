"""A traced graph that is compiled when it is first called, on tensors of PyTorch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from glow_mlir.api.model_session import ModelSession
from glow_mlir.frontends.torch.model import TracedModel
from glow_mlir.frontends.torch.traced_graph import TracedGraph
from glow_mlir.runtime.machine_code import MachineCode, MachineEntry
from glow_mlir.torch.array_call import ArrayCall
from glow_mlir.torch.functional import with_size_inputs, without_changes
from glow_mlir.torch.graph_reports import GraphReport, new_graph
from glow_mlir.torch.pointer_call import PointerCall

Call = Callable[[list[Any]], list[Any]]
"""Computes the outputs of a graph of its inputs."""


def compiled_call(
    graph: TracedGraph, options: Mapping[str, Any], constants: Mapping[str, Any], state: frozenset[str] = frozenset()
) -> tuple[Call, ModelSession]:
    """A graph, compiled, and its session. Inputs of `constants` are these arrays, those of `state` are kept by PyTorch."""
    if not graph.symbols and options.get("backend", "cpu") == "cpu":
        session = ModelSession.of(TracedModel(graph, constants, state=state), **options)
        loaded = session.loaded
        if isinstance(loaded, MachineCode):
            entry = loaded.load(session.first.name)
            assert isinstance(entry, MachineEntry)
            return PointerCall(graph, entry, loaded.state), session
    functional = without_changes(graph)
    sized, symbols = with_size_inputs(functional.graph)
    session = ModelSession.of(TracedModel(sized, constants), **options)
    return functional.around(ArrayCall(functional.graph, session, symbols)), session


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
        call, _ = compiled_call(self._graph, self._options, {})
        self.report.compilations += 1
        self.report.compile_seconds += time.perf_counter() - start
        return call

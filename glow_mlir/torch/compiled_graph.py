"""A traced graph that is compiled at its first call, on PyTorch tensors."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import fx

from glow_mlir.api.model_session import ModelSession
from glow_mlir.dialects.packages import DEFAULT_BACKEND, loader_of
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.torch.graph_signature import changed_inputs
from glow_mlir.frontends.torch.layouts import memory_order
from glow_mlir.frontends.torch.model import TracedModel
from glow_mlir.frontends.torch.traced_graph import TracedGraph, TracedTensor
from glow_mlir.runtime.machine_code import MachineCode, MachineEntry
from glow_mlir.support.activity import caution
from glow_mlir.torch.array_call import ArrayCall
from glow_mlir.torch.capture import captured
from glow_mlir.torch.functional import with_size_inputs, with_size_outputs, without_changes
from glow_mlir.torch.graph_reports import GraphReport, new_graph
from glow_mlir.torch.pointer_call import PointerCall
from glow_mlir.torch.segments import SegmentedCall, unsupported_nodes
from glow_mlir.torch.weights import Call, InstancedCall, Weights


def compiled_call(
    graph: TracedGraph,
    options: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    state: frozenset[str] = frozenset(),
) -> Call:
    """
    Compile a graph. `constants` are arrays of inputs that become constants; the caller keeps the inputs in `state`.

    Raises `GlowError` if the graph is not supported.
    """
    functional = without_changes(graph)
    if not graph.symbols and loader_of(str(options.get("backend", DEFAULT_BACKEND))) is not None:
        # The new value of an input with gaps has to be copied into it.
        own = graph if _change_in_place(graph) else functional.graph
        session = ModelSession.of(TracedModel(own, constants, state=state), **options)
        loaded = session.loaded
        if isinstance(loaded, MachineCode):
            entry = loaded.load(session.first.name)
            assert isinstance(entry, MachineEntry)
            call = PointerCall(own, entry, loaded.state)
            return call if own is graph else functional.around(call)
    sized, symbols = with_size_inputs(functional.graph)
    sized, decided = with_size_outputs(sized)
    # Sizes of later calls are compiled when weights may already have changed.
    kept = {name: np.array(array) for name, array in (constants or {}).items()}
    session = ModelSession.of(TracedModel(sized, kept), **options)
    return functional.around(ArrayCall(functional.graph, session, symbols, decided))


def _change_in_place(graph: TracedGraph) -> bool:
    """Whether all changed inputs are without gaps, so that machine code may write to them."""
    changed = changed_inputs(graph)
    values = (item.value for item in graph.inputs if item.name in changed)
    return all(isinstance(value, TracedTensor) and memory_order(*value.hint) is not None for value in values)


class CompiledGraph:
    """
    A graph as PyTorch calls it: with a list of tensors, which it may clear.

    It is compiled at its first call. PyTorch computes unsupported operators between the compiled parts.
    """

    def __init__(
        self, module: fx.GraphModule, phase: str, options: Mapping[str, Any], static: Sequence[int] = ()
    ) -> None:
        """`static` are the positions of inputs that are parameters or buffers."""
        self._graph = captured(module.graph)
        self._nodes = {node.name: node for node in module.graph.nodes}
        self._options = dict(options)
        self._static = tuple(static)
        self._lock = threading.Lock()
        self._call: Call | None = None
        first = next((str(node.location) for node in self._graph.nodes if node.location.file), "")
        self.report: GraphReport = new_graph(phase, len(self._graph.nodes), first)

    def boxed(self) -> Call:
        """
        The graph as a function that is marked to take a list of arguments, and returns the outputs.

        It raises `GlowError` if the graph is not supported, or fails.
        """

        def call(inputs: list[Any]) -> list[Any]:
            given = list(inputs)
            inputs.clear()
            self.report.calls += 1
            return (self._call or self._ready(given))(given)

        call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return call

    def _ready(self, inputs: Sequence[Any]) -> Call:
        """Compile unless another thread just did."""
        with self._lock:
            call = self._call = self._call or self._first(inputs)
        return call

    def _first(self, inputs: Sequence[Any]) -> Call:
        """Compile for the first call."""
        if weights := Weights(self._graph, self._static, inputs):
            return InstancedCall(weights, inputs, self._compiled, self.report.reasons)
        return self._compiled({}, frozenset())

    def _compiled(self, constants: Mapping[str, Any], state: frozenset[str]) -> Call:
        start = time.perf_counter()
        try:
            # Graphs of variable sizes are compiled during calls, too late to split them into segments.
            if self._graph.symbols and (eager := unsupported_nodes(self._graph)):
                return self._segmented(eager)
            return compiled_call(self._graph, self._options, constants, state)
        except UnsupportedError:
            eager = unsupported_nodes(self._graph)
            if not eager:
                raise
            return self._segmented(eager)
        finally:
            self.report.compilations += 1
            self.report.compile_seconds += time.perf_counter() - start

    def _segmented(self, eager: Mapping[str, str]) -> Call:
        """Split the graph into segments; PyTorch computes some of them."""
        self._tell_eager(eager)
        return SegmentedCall(self._graph, self._nodes, eager, lambda part: compiled_call(part, self._options))

    def _tell_eager(self, eager: Mapping[str, str]) -> None:
        """Warn about the operators that PyTorch computes."""
        for node in self._graph.nodes:
            if node.name in eager:
                where = f"{node.target} ({node.location or node.location.module or node.name})"
                if where not in self.report.eager:
                    caution(UnsupportedError(f"PyTorch computes {where}: {eager[node.name]}"))
                self.report.eager[where] = eager[node.name]

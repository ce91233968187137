"""A traced graph that is compiled at its first call, on PyTorch tensors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from torch import fx
from torch._C import _autograd as autograd
from torch.autograd.profiler import record_function

from glow_mlir.api.model_session import ModelSession
from glow_mlir.dialects.packages import DEFAULT_BACKEND, loader_of
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.torch.graph_signature import changed_inputs, reads_data
from glow_mlir.frontends.torch.layouts import memory_order
from glow_mlir.frontends.torch.model import TracedModel
from glow_mlir.frontends.torch.traced_graph import CONSTANT, TracedGraph, TracedTensor
from glow_mlir.runtime.machine_code import MachineCode, MachineEntry
from glow_mlir.support.activity import caution
from glow_mlir.torch.array_call import ArrayCall
from glow_mlir.torch.capture import captured, source_location
from glow_mlir.torch.derived_symbols import with_derived_symbols
from glow_mlir.torch.functional import with_size_inputs, with_size_outputs, without_changes
from glow_mlir.torch.graph_options import GraphOptions
from glow_mlir.torch.graph_reports import GraphReport, counted, new_graph
from glow_mlir.torch.pointer_call import PointerCall
from glow_mlir.torch.safety_net import RAISED, Call, SafetyNet
from glow_mlir.torch.segments import SegmentedCall
from glow_mlir.torch.tensors import listed
from glow_mlir.torch.unsupported_nodes import unsupported_nodes
from glow_mlir.torch.weights import InstancedCall, Weights

is_profiled: Callable[[], bool] = getattr(autograd, "_profiler_enabled")
"""Whether PyTorch's profiler records spans."""


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

    It is compiled at its first call. PyTorch computes unsupported operators between the compiled parts, and the parts
    whose compilation fails.
    """

    def __init__(self, module: fx.GraphModule, phase: str, options: GraphOptions, static: Sequence[int] = ()) -> None:
        """`static` are the positions of inputs that are parameters or buffers."""
        self._module = module
        self._nodes = {node.name: node for node in module.graph.nodes}
        self._options = options
        self._static = tuple(static)
        self._lock = threading.Lock()
        self._call: Call | None = None
        operators = [node for node in module.graph.nodes if node.op == "call_function"]
        first = next(filter(None, (str(source_location(node)) for node in operators)), "")
        self.report: GraphReport = new_graph(phase, len(operators), first)
        self._span = f"glow: graph {self.report.number}, {phase}"
        self._net = SafetyNet(self.report, options.raises)

    def boxed(self) -> Call:
        """
        The graph as a function that is marked to take a list of arguments, and returns the outputs.

        It raises `GlowError` if the graph fails.
        """

        def call(inputs: list[Any]) -> list[Any]:
            given = list(inputs)
            inputs.clear()
            self.report.calls += 1
            if is_profiled():
                with record_function(self._span):
                    return (self._call or self._ready(given))(given)
            return (self._call or self._ready(given))(given)

        call._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return call

    def _ready(self, inputs: Sequence[Any]) -> Call:
        """Compile unless another thread just did."""
        with self._lock:
            if self._call is None:
                part = _described("the graph", self.report.operators, self.report.location)
                self._call = self._net.made(part, lambda: self._first(inputs), lambda: self._by_pytorch)
            return self._call

    def _by_pytorch(self, inputs: list[Any]) -> list[Any]:
        """Let PyTorch compute the whole graph."""
        return listed(self._module(*inputs))

    @cached_property
    def _graph(self) -> TracedGraph:
        return with_derived_symbols(captured(self._module.graph))

    def _first(self, inputs: Sequence[Any]) -> Call:
        """Compile for the first call."""
        if weights := Weights(self._graph, self._static, inputs):
            return InstancedCall(weights, inputs, self._compiled, self.report.reasons)
        return self._compiled({}, frozenset())

    def _compiled(self, constants: Mapping[str, Any], state: frozenset[str]) -> Call:
        start = time.perf_counter()
        try:
            # Graphs of variable sizes are compiled during calls, too late to split them into segments.
            is_late = self._graph.symbols or any(map(reads_data, self._graph.nodes))
            if is_late and (parted := unsupported_nodes(self._graph)):
                return self._segmented(parted)
            return compiled_call(self._graph, self._options.session, constants, state)
        except RAISED:
            raise
        except Exception as error:
            if self._net.raises and not isinstance(error, UnsupportedError):
                raise
            parted = unsupported_nodes(self._graph)
            if not parted:
                raise
            return self._segmented(parted)
        finally:
            self.report.compilations += 1
            self.report.compile_seconds += time.perf_counter() - start

    def _segmented(self, parted: Mapping[str, str]) -> Call:
        """Split the graph into segments; PyTorch computes those of the nodes `parted`."""
        self._tell_eager(parted)
        return SegmentedCall(self._graph, self._nodes, parted, self._segment, self._body)

    def _segment(self, part: TracedGraph) -> Call:
        """Compile one segment; PyTorch computes it if that fails."""
        location = next((str(node.location) for node in part.nodes if node.location.file), "")
        described = _described("a part", len(part.nodes), location)
        return self._net.made(
            described,
            lambda: compiled_call(part, self._options.session),
            lambda: SegmentedCall(part, self._nodes, {node.name: "" for node in part.nodes}, self._segment, self._body),
        )

    def _body(self, module: fx.GraphModule) -> Callable[..., Any]:
        """Compile a graph that an operator of this one calls, such as a branch of `cond`."""
        run = CompiledGraph(module, "body", self._options).boxed()
        (returned,) = module.graph.output_node().args
        is_single = not isinstance(returned, tuple | list)

        def call(*inputs: Any) -> Any:
            found = run(list(inputs))
            return found[0] if is_single else tuple(found)

        return call

    def _tell_eager(self, parted: Mapping[str, str]) -> None:
        """Warn about the operators that PyTorch computes."""
        for node in self._graph.nodes:
            reason = parted.get(node.name)
            if reason and node.target != CONSTANT:
                where = f"{node.target} ({node.location or node.location.module or node.name})"
                if where not in self.report.eager:
                    caution(UnsupportedError(f"PyTorch computes {where}: {reason}"))
                self.report.eager[where] = reason


def _described(part: str, operators: int, location: str) -> str:
    """A graph or a part of one in a few words: `a part of 3 operators (model.py:12)`."""
    found = f"{part} of {counted(operators, 'operator')}"
    return f"{found} ({location})" if location else found

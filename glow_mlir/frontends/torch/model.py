"""Traced graphs as models: queries of sessions, caches and other processes, without importing the graph."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from glow_mlir.errors import OptionError
from glow_mlir.frontends.torch.graph_signature import changed_inputs, computed_outputs, output_name, used_names
from glow_mlir.frontends.torch.layouts import memory_order
from glow_mlir.frontends.torch.sizes import spelled
from glow_mlir.frontends.torch.traced_graph import Reference, TracedGraph, TracedTensor
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.support.symbols import GivenDimension

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


class TracedModel:
    """
    A graph traced by PyTorch, and the inputs that are constants, by name: parameters and buffers.

    The axes of inputs and outputs are in memory order. The arrays must not change.
    """

    def __init__(
        self,
        graph: TracedGraph,
        constants: Mapping[str, np.ndarray] | None = None,
        output_names: tuple[str, ...] = (),
        state: frozenset[str] = frozenset(),
        changes: Mapping[str, Reference] | None = None,
        parameters: tuple[str, ...] = (),
        gradient_stops: tuple[str, ...] = (),
    ) -> None:
        """
        Create a model.

        - `output_names`: the names of computed tensors, by default those of their nodes.
        - `state`: inputs that are state kept by the caller, in addition to those that the graph changes.
        - `changes`: constants that are state → the results that become their new values.
        - `parameters`: the constants that training changes.
        - `gradient_stops`: the nodes of the module at whose operands gradients end.
        """
        self.graph = graph
        self.constants = dict(constants or {})
        self.state = state
        self.changes = dict(changes or {})
        self.parameters = parameters
        self.gradient_stops = gradient_stops
        self.output_names = output_names or tuple(map(output_name, computed_outputs(graph)))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle graph and arrays for another process."""
        given = self.graph, self.constants, self.output_names, self.state, self.changes
        return type(self), (*given, self.parameters, self.gradient_stops)

    def __str__(self) -> str:
        """Its number of operators."""
        return f"a graph of {len(self.graph.nodes)} operators"

    @cached_property
    def identity(self) -> str:
        """A digest of the graph, without source lines, and of the content of constants."""
        state = hashlib.sha256()
        graph = self.graph
        for item in (
            *graph.inputs,
            self.output_names,
            graph.outputs,
            sorted(self.state),
            sorted(self.changes.items()),
            sorted(graph.symbols.items()),
        ):
            state.update(repr(item).encode())
        for node in graph.nodes:
            described = (
                node.name,
                node.target,
                node.arguments,
                sorted(node.keywords.items()),
                node.results,
                node.location.module,
            )
            state.update(repr(described).encode())
        for name, array in self.constants.items():
            state.update(f"{name} {array.dtype} {array.shape}".encode())
            state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return f"traced graph {state.hexdigest()}"

    def opened(self) -> tuple[TracedModel, dict[str, np.ndarray]]:
        """The model with parameters and float constants as inputs; and their arrays."""
        opened = {
            name: array
            for name, array in self.constants.items()
            if name in self.parameters or array.dtype.kind not in "biu"
        }
        kept = {name: array for name, array in self.constants.items() if name not in opened}
        return TracedModel(self.graph, kept, self.output_names, self.state, self.changes), opened

    def padded(self) -> list[str]:
        """The parameters that are tables with a row without gradient (`padding_idx`)."""
        tables = [node.arguments for node in self.graph.nodes if node.target == "aten.embedding.default"]
        names = {str(getattr(table[0], "name", "")) for table in tables if len(table) > 2 and table[2] != -1}
        return sorted(names.intersection(self.parameters))

    def free_dimensions(self) -> list[str]:
        """The labels of free dimensions of inputs."""
        return [label for argument in self._inputs for label in argument.free]

    @cached_property
    def _inputs(self) -> tuple[Argument, ...]:
        read, changed = used_names(self.graph), self.state.union(changed_inputs(self.graph))
        return tuple(
            _argument(item.name, item.value)
            for item in self.graph.inputs
            if isinstance(item.value, TracedTensor) and item.name in read
            if item.name not in self.constants and item.name not in changed
        )

    def signature(self, dimensions: Mapping[str, GivenDimension]) -> Signature:
        """Inputs and outputs; `dimensions` has sizes of free dimensions."""
        values = self.graph.values
        outputs = [
            _argument(name, values[item.name][item.index])
            for name, item in zip(self.output_names, computed_outputs(self.graph), strict=True)
        ]
        return Signature(
            tuple(argument.sized(dimensions) for argument in self._inputs),
            tuple(argument.sized(dimensions) for argument in outputs),
            {name: _sanitized_bounds(*bounds) for name, bounds in self.graph.symbols.items()},
        )

    def module(
        self,
        dimensions: Mapping[str, GivenDimension],
        by_content: bool = True,
        values: Mapping[str, np.ndarray] | None = None,
    ) -> ModuleOp:
        """
        Import the graph as a module of `glow_high`; see `import_model` for the arguments.

        Raises `OptionError` for unknown dimensions, and `UnsupportedError` for unsupported operators.
        """
        from glow_mlir.frontends.builder.constant_pool import ConstantPool
        from glow_mlir.frontends.torch.importer import GraphImport

        if unknown := dimensions.keys() - self.graph.symbols.keys() - {*self.free_dimensions()}:
            known = ", ".join(self.graph.symbols) or "none"
            raise OptionError(f"the graph has no free dimension '{min(unknown)}'", hint=f"free dimensions: {known}")
        pool = None if by_content else ConstantPool()
        return GraphImport(
            self.graph, self.constants, dimensions, self.output_names, pool, kept=self.state, changes=self.changes
        ).run()


def _sanitized_bounds(least: int, most: int | None) -> tuple[int, int | None]:
    """The bounds of a size; lower bounds up to 2 become 0, because PyTorch excludes the sizes 0 and 1 by default."""
    return least if least > 2 else 0, most


def _argument(name: str, value: object) -> Argument:
    """An input or output, with axes in memory order."""
    assert isinstance(value, TracedTensor)
    order = memory_order(*value.hint) or range(len(value.sizes))
    shape = (value.sizes[axis] for axis in order)
    return Argument(name, value.dtype, tuple(size if isinstance(size, int) else spelled(size) for size in shape))

"""Import graphs traced by PyTorch into modules of `glow_high`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.storage import SaveOp
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.errors import CancelledError, CompilerBugError, OptionError, UnsupportedError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.builder.inputs import symbolic_sizes
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.torch.functions import importer_of
from glow_mlir.frontends.torch.graph_signature import (
    COPY_INTO,
    changed_inputs,
    computed_outputs,
    has_effects,
    input_symbols,
    output_name,
    symbols_of,
    used_names,
)
from glow_mlir.frontends.torch.layouts import inverse, memory_order
from glow_mlir.frontends.torch.node import TorchNode, element_named
from glow_mlir.frontends.torch.sizes import size_of_expression
from glow_mlir.frontends.torch.traced_graph import (
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
from glow_mlir.support.symbols import Dimension, GivenDimension, Size, Sizes


class _MissingOperandError(Exception):
    """The node that computes an operand is not supported."""


@dataclass
class GraphImport:
    """
    Import a traced graph as a function.

    `dimensions` has the sizes of symbols. `constants` are inputs with constant values. Inputs that the graph changes
    are state. Tensors have PyTorch's memory layout: the axes of inputs and outputs are in memory order.
    """

    graph: TracedGraph
    constants: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    dimensions: Mapping[str, GivenDimension] = field(default_factory=dict[str, GivenDimension])
    output_names: tuple[str, ...] = ()
    """The names of computed output tensors; by default those of their nodes."""
    pool: ConstantPool | None = None
    module: ModuleOp | None = None
    seed: int = 0
    changes: Mapping[str, Reference] = field(default_factory=dict[str, Reference])
    """`constants` that are state instead → their new values."""
    kept: frozenset[str] = frozenset()
    """Inputs that are state kept by the caller, in addition to those that the graph changes."""
    is_trial: bool = False
    """Whether only `failed` is wanted: after a failure, the rest of the graph is imported with made-up operands."""
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Unsupported node → the reason."""
    _values: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    _sizes: dict[str, Size] = field(default_factory=dict[str, Size])
    _traced: dict[str, tuple[TracedValue, ...]] = field(default_factory=dict[str, tuple[TracedValue, ...]])
    """The traced results of inputs and nodes."""

    def run(self, name: str = "main") -> ModuleOp:
        """Import the graph; raises an `UnsupportedError` that lists all unsupported nodes."""
        storage = Storage(ModuleOp([]) if self.module is None else self.module)
        builder = ModuleBuilder(frozenset(self.output_names), self.pool, storage, self.seed)
        self._sizes = symbolic_sizes({label: self._dimension(label) for label in input_symbols(self.graph)})
        self._traced = self.graph.values
        self._add_inputs(builder)
        changed = changed_inputs(self.graph)
        for node in self.graph.nodes:
            if node.target != COPY_INTO:
                self._add_node(builder, node)
        builder.problems.raise_all()
        self._add_outputs(builder)
        for target, value in {**changed, **self.changes}.items():
            self._save(builder, target, value)
        return builder.finish(name)

    def _dimension(self, label: str) -> Dimension:
        if label not in self.dimensions:
            raise UnsupportedError(f"the dimension '{label}' has no size")
        size = self.dimensions[label]
        if isinstance(size, str):
            hint = "a number, or two: (least, most)"
            raise OptionError(f"dimension '{label}' of a traced graph cannot be '{size}' long", hint=hint)
        return size

    def size(self, size: int | Expression) -> Size:
        """Convert a traced size."""
        return size_of_expression(size, self._sizes)

    # Inputs and outputs

    def _add_inputs(self, builder: ModuleBuilder) -> None:
        changed = self.kept.union(changed_inputs(self.graph))
        read = used_names(self.graph)
        types = {
            item.name: tensor(self._stored_sizes(item.value), element_named(item.value.dtype, item.name))
            for item in self.graph.inputs
            if isinstance(item.value, TracedTensor)
            and (item.name in read or item.name in changed)
            and item.name not in self.constants
        }
        plain = {name: type_ for name, type_ in types.items() if name not in changed}
        values = builder.add_inputs(plain, {})
        for item in self.graph.inputs:
            if not isinstance(item.value, TracedTensor):
                self._values[item.name] = (self._number(item.value),)
            elif item.name in self.constants:
                self._values[item.name] = (self._constant(builder, item),)
            elif item.name in changed:
                state = builder.add_open_state(item.name, types[item.name])
                self._values[item.name] = (self._in_order(builder, item.name, state, item.value, to_memory=False),)
            elif item.name in types:
                value = values[item.name]
                self._values[item.name] = (self._in_order(builder, item.name, value, item.value, to_memory=False),)

    def _constant(self, builder: ModuleBuilder, item: TracedInput) -> SSAValue:
        array = self.constants[item.name]
        if item.name in self.changes:
            return builder.add_state(item.name, array, is_trainable=False)
        return builder.constant(array, item.name, named_location(item.name))

    def _stored_sizes(self, value: TracedTensor) -> Sizes:
        """The sizes of a tensor, with axes in memory order."""
        sizes = tuple(self.size(size) for size in value.sizes)
        order = memory_order(*value.hint)
        return sizes if order is None else tuple(sizes[axis] for axis in order)

    def _in_order(
        self, builder: ModuleBuilder, name: str, value: SSAValue, traced: TracedTensor, to_memory: bool
    ) -> SSAValue:
        """Permute axes from memory order to the graph's order, or the reverse if `to_memory`."""
        order = memory_order(*traced.hint)
        if order is None or order == tuple(range(len(order))):
            return value
        node = NodeBuilder(builder, "transpose", name, named_location(name))
        return node.emit(TransposeOp, value, permutation=order if to_memory else inverse(order))

    def _add_outputs(self, builder: ModuleBuilder) -> None:
        wanted = computed_outputs(self.graph)
        names = self.output_names or tuple(map(output_name, wanted))
        for name, reference in zip(names, wanted, strict=True):
            value = self._found(reference)
            traced = self._traced[reference.name][reference.index]
            if not isinstance(traced, TracedTensor):
                raise UnsupportedError(f"the output '{name}' is not a tensor")
            builder.add_output(name, self._in_order(builder, name, value, traced, to_memory=True))

    def _save(self, builder: ModuleBuilder, target: str, argument: Argument) -> None:
        """Save the new value of an input that is state."""
        (traced,) = self._traced[target]
        assert isinstance(traced, TracedTensor)
        value = self._resolved(argument)
        kept = self._in_order(builder, target, value, traced, to_memory=True)
        builder.function.block.add_op(SaveOp.to(kept, target, named_location(target)))

    # Nodes

    def _add_node(self, builder: ModuleBuilder, traced: TracedNode) -> None:
        if all(not isinstance(result, TracedTensor) for result in traced.results):
            if self.is_trial:
                self._bind(traced)
            self._values[traced.name] = tuple(map(self._number, traced.results))
            if has_effects(traced):
                reason = f"the operator {traced.target} does not return a tensor"
                self.failed[traced.name] = reason
                builder.problems.errors.append(UnsupportedError(reason, node=traced.name, file=str(traced.location)))
            return
        node = TorchNode(traced, builder, [], self._traced, self._sizes)
        with builder.node_errors(traced.target, node.name):
            try:
                self._values[traced.name] = self._built(node)
            except _MissingOperandError:
                return
            except UnsupportedError as error:
                self.failed[traced.name] = error.reason
                error.file = error.file or str(traced.location)
                self._make_up(builder, traced)
                raise
            except Exception as error:
                if not self.is_trial or isinstance(error, MemoryError | CancelledError):
                    raise
                self.failed[traced.name] = f"its importer failed: {type(error).__name__}: {error}"
                self._make_up(builder, traced)
                raise UnsupportedError(self.failed[traced.name]) from error

    def _make_up(self, builder: ModuleBuilder, traced: TracedNode) -> None:
        """In a trial, let inputs take the place of the results of a node that failed."""
        if not self.is_trial:
            return
        self._bind(traced)
        results: list[SSAValue | None] = []
        for number, result in enumerate(traced.results):
            expected, name = self._expected(result, traced.name), f"{traced.name}.{number}"
            types = {} if expected is None else {name: tensor(expected[1], expected[0])}
            results.append(builder.add_inputs(types, {}).get(name))
        self._values[traced.name] = tuple(results)

    def _bind(self, traced: TracedNode) -> None:
        """In a trial, give example values to the symbols that a node computes from data."""
        for symbol in symbols_of(traced.results):
            if symbol in self.graph.symbols and symbol not in self._sizes:
                self._sizes |= symbolic_sizes({symbol: self._dimension(symbol)})

    def _built(self, node: TorchNode) -> tuple[Any, ...]:
        """Import a node; its results."""
        traced = node.traced
        node.expected[:] = [self._expected(result, node.name) for result in traced.results]
        importer = importer_of(traced.target)
        if importer is None:
            location = str(traced.location)
            node.builder.problems.unknown.append((node.kind, f"{node.name} ({location})" if location else node.name))
            self.failed[traced.name] = f"the operator {traced.target} is not supported"
            self._make_up(node.builder, traced)
            if self.is_trial:
                return self._values[traced.name]
            raise _MissingOperandError(node.name)
        arguments = [self._resolved(item) for item in traced.arguments]
        keywords = {name: self._resolved(item) for name, item in traced.keywords.items()}
        found = importer(node, *arguments, **keywords)
        results = cast("tuple[Any, ...]", (found,) if isinstance(found, SSAValue) else tuple(found))
        self._check(node, results)
        return results

    def _expected(self, result: TracedValue, name: str) -> Any:
        if not isinstance(result, TracedTensor):
            return None
        unknown = {symbol for size in result.sizes if isinstance(size, Expression) for symbol in size.symbols}
        if not unknown <= self._sizes.keys():  # The importer binds them.
            return None
        return element_named(result.dtype, name), tuple(self.size(size) for size in result.sizes)

    def _number(self, result: TracedValue) -> Any:
        """A given or computed number; if it is not a size, it stays an expression, which no operator supports."""
        try:
            return self.size(result) if isinstance(result, Expression) else result
        except UnsupportedError:
            return result

    def _check(self, node: TorchNode, results: tuple[Any, ...]) -> None:
        """Raise `CompilerBugError` if an importer's results differ in element type or sizes from the traced ones."""
        wanted = [self._expected(result, node.name) for result in node.traced.results]
        for number, (value, expected) in enumerate(zip(results, wanted, strict=False)):
            if value is None or expected is None:
                continue
            given = element_of(value), sizes_of(value)
            if given != expected:
                raise CompilerBugError(f"{node.kind} gives {given} as result {number}, not {expected}", node=node.name)

    def _found(self, reference: Reference) -> Any:
        """The value of a reference; raises `_MissingOperandError` if the node that computes it is not supported."""
        known = self._values.get(reference.name, ())
        if reference.index >= len(known) or known[reference.index] is None:
            raise _MissingOperandError(reference.name)
        return known[reference.index]

    def _resolved(self, argument: Argument) -> Any:
        """An argument with references replaced by values."""
        if isinstance(argument, Reference):
            value = self._found(argument)
            return self.size(value) if isinstance(value, Expression) else value
        if isinstance(argument, Expression):
            return self.size(argument)
        if isinstance(argument, tuple):
            return tuple(map(self._resolved, argument))
        return argument

"""
Models that take sequences, optionals or maps, or have host operators: programs of Python steps and compiled models.

Each model of a program is compiled like any other. A model that takes sequences or optionals is compiled for their
structure in a call: the number of tensors, their types and ranks.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import onnx
from onnx import helper

from glow_mlir.errors import GlowError, UnsupportedError
from glow_mlir.frontends.onnx.given_values import NUMBERS, list_of, tensor_of, value_of
from glow_mlir.frontends.onnx.host_operators.registry import Attributes, evaluate
from glow_mlir.frontends.onnx.host_program import HostStep, ModelStep, Step, constant_arrays, host_program
from glow_mlir.frontends.onnx.importer import Model
from glow_mlir.frontends.onnx.inconsistencies import Inconsistencies, wrong_shape
from glow_mlir.frontends.onnx.models.inlining import inlined
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.frontends.onnx.models.traversal import all_graphs
from glow_mlir.frontends.onnx.signature import value_argument
from glow_mlir.frontends.onnx.values import type_words
from glow_mlir.runtime.executable import MAIN, EntryPoint, Executable
from glow_mlir.runtime.signature import Argument
from glow_mlir.runtime.state import State

Compiled = Callable[[Model], EntryPoint]
"""Compiles a model of tensors without host operators."""

MAX_STRUCTURES = 16
"""The number of input structures for which a compiled model is kept."""


class HostedModel(Executable):
    """A model as a program of host operators and of models without them."""

    def __init__(self, model: Model, compile_: Compiled, strict: bool = False) -> None:
        """
        `model` is a result of `whole_model`, whose faults have already been reported.

        With `strict`, calls refuse results computed in Python whose shapes differ from the declared ones.
        """
        super().__init__([MAIN], State([]))
        self._model = model
        self._compile = compile_
        self._strict = strict

    def load(self, name: str) -> EntryPoint:
        try:
            return HostedEntry(
                name, replace(self._model, proto=inlined(self._model.proto)), self._compile, self._strict
            )
        except GlowError as error:
            error.file = error.file or self._model.file
            raise


class HostedEntry(EntryPoint):
    """The entry of a `HostedModel`."""

    def __init__(self, name: str, opened: Model, compile_: Compiled, strict: bool) -> None:
        super().__init__(name, (), State([]))
        model = opened.proto

        def compiled(part: onnx.ModelProto) -> EntryPoint:
            return compile_(replace(opened, proto=part))

        known = initializers_of(model.graph)
        self._inputs = tuple(value_argument(value) for value in model.graph.input if value.name not in known)
        self._types = {value.name: value.type for value in model.graph.input if value.name not in known}
        self._outputs = tuple(map(value_argument, model.graph.output))
        for argument in self._inputs:
            if not argument.dtype and not argument.type:
                raise UnsupportedError(f"input '{argument.name}' has no type")
        steps = host_program(model)
        self._steps = [_HostedStep(step) if isinstance(step, HostStep) else _Part(step, compiled) for step in steps]
        used = [name for step in steps if isinstance(step, HostStep) for name in step.node.input]
        self._constants = constant_arrays(model, [*used, *(argument.name for argument in self._outputs)])
        by_python = {name for step in steps if isinstance(step, HostStep) for name in step.node.output}
        self._unchecked = {value.name: value for value in model.graph.output if value.name in by_python}
        self._checked: dict[str, tuple[int, ...]] = {}
        """Result computed in Python → the last shape that agreed with the declared one."""
        self._file, self._strict = opened.file, strict
        self._last = _last_uses(steps, [argument.name for argument in self._outputs])

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return self._inputs

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return self._outputs

    def _call(self, inputs: Mapping[str, Any], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {name: value_of(f"input '{name}'", type_, inputs[name]) for name, type_ in self._types.items()}
        values: dict[str, Any] = {**self._constants, **given}
        for step, dead in zip(self._steps, self._last, strict=True):
            step.run(values)
            for name in dead:
                values.pop(name, None)
        self._check_shapes(values)
        # Copy inputs and constants among the results: changing a result must not change them.
        shared = self._constants.keys() | inputs.keys()
        names = (argument.name for argument in self._outputs)
        return {name: copied(values[name]) if name in shared else values[name] for name in names}

    def _check_shapes(self, values: Mapping[str, Any]) -> None:
        """Warn once of each result computed in Python whose shape differs from the declared one; an error if strict."""
        found = Inconsistencies()
        for name, declared in list(self._unchecked.items()):  # A copy: other threads may change it.
            if not isinstance(values[name], np.ndarray):
                continue
            shape = cast("tuple[int, ...]", values[name].shape)
            if self._checked.get(name) == shape:
                continue
            if (doubt := wrong_shape("output", declared, shape)) is None:
                self._checked[name] = shape
            else:
                found.outputs[name] = doubt
        if found.outputs:
            found.settle(self._file, self._strict)
        for name in found.outputs:
            self._unchecked.pop(name, None)


def copied(value: Any) -> Any:
    """A deep copy of a value of arrays, lists and dictionaries."""
    if isinstance(value, list | tuple):
        return list(map(copied, cast("list[Any]", value)))
    if isinstance(value, dict):
        return dict(cast("dict[Any, Any]", value))
    return cast("np.ndarray", value).copy() if isinstance(value, np.ndarray) else value


def _last_uses(steps: Sequence[Step], kept: Sequence[str]) -> list[set[str]]:
    """For each step, the values that no later step uses."""
    alive, found = set(kept), list[set[str]]()
    for step in reversed(steps):
        used = set(step.node.input) if isinstance(step, HostStep) else set(step.inputs)
        found.append(used - alive)
        alive |= used
    return found[::-1]


class _HostedStep:
    """A host operator on values by name."""

    def __init__(self, step: HostStep) -> None:
        self._attributes = Attributes(step.node)
        self._operands, self._results = tuple(step.node.input), tuple(step.node.output)

    def run(self, values: dict[str, Any]) -> None:
        """Add the results to the values."""
        results = evaluate(self._attributes, [values[name] if name else None for name in self._operands])
        values.update((name, value) for name, value in zip(self._results, results, strict=False) if name)


class _Part:
    """A model on values by name, compiled for each structure of its inputs."""

    def __init__(self, step: ModelStep, compile_: Callable[[onnx.ModelProto], EntryPoint]) -> None:
        self._model = step.model
        self._names = step.inputs
        self._compile = compile_
        self._known: OrderedDict[object, EntryPoint] = OrderedDict()
        self._looking = threading.Lock()
        self._taken = names_in(step.model.graph)
        self._structured = {
            value.name: value.type
            for value in step.model.graph.input
            if value.name in self._names and value.type.WhichOneof("value") != "tensor_type"
        }
        for name, type_ in self._structured.items():
            if "map" in type_words(type_):
                raise UnsupportedError(f"input '{name}' is a map, which only DictVectorizer and CastMap take")
        if not self._structured:  # Report the model's errors at once.
            self._known[()] = compile_(self._model)

    def run(self, values: dict[str, Any]) -> None:
        """Add the results to the values."""
        given = {name: _Given(name, type_, values[name], self._taken) for name, type_ in self._structured.items()}
        structure = tuple(item.structure for item in given.values())
        with self._looking:
            entry = self._known.get(structure)
        entry = entry or self._compile(_with_structures(self._model, list(given.values())))
        with self._looking:
            self._known[structure] = entry
            self._known.move_to_end(structure)
            if len(self._known) > MAX_STRUCTURES:
                self._known.popitem(last=False)
        flat = {name: values[name] for name in self._names if name not in given}
        for item in given.values():
            flat |= item.tensors
        values.update(entry.run(flat))


class _Given:
    """A sequence or optional passed by a caller: its tensors by name, and the nodes that construct it from them."""

    def __init__(self, name: str, type_: onnx.TypeProto, value: object, taken: Collection[str]) -> None:
        """`taken` has the model's names, which the tensors of the value must not have."""
        self.name = name
        self._taken_names = taken
        self.tensors: dict[str, np.ndarray] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.structure = self._taken(name, type_, value)

    def _taken(self, name: str, type_: onnx.TypeProto, value: object) -> object:
        """Decompose a value called `name`; returns its structure. Raises `InputError` for a value of another type."""
        match type_.WhichOneof("value"):
            case "sequence_type":
                return self._sequence(name, type_.sequence_type.elem_type, value)
            case "optional_type":
                return self._optional(name, type_.optional_type.elem_type, value)
            case _:
                return self._tensor(name, type_.tensor_type.elem_type, value)

    def _sequence(self, name: str, element: onnx.TypeProto, value: object) -> object:
        given = list_of(f"input '{self.name}'", value)
        items = [self._free(f"{name}.{position}") for position in range(len(given))]
        inner = [self._taken(item, element, one) for item, one in zip(items, given, strict=True)]
        if items:
            self.nodes.append(helper.make_node("SequenceConstruct", items, [name]))
        else:
            self.nodes.append(helper.make_node("SequenceEmpty", [], [name], dtype=element.tensor_type.elem_type or 1))
        return ("sequence", *inner)

    def _optional(self, name: str, element: onnx.TypeProto, value: object) -> object:
        if value is None:
            self.nodes.append(helper.make_node("Optional", [], [name], type=element))
            return None
        own = self._free(f"{name}.value")
        inner = self._taken(own, element, value)
        self.nodes.append(helper.make_node("Optional", [own], [name]))
        return ("optional", inner)

    def _free(self, name: str) -> str:
        """A name that the model does not use, derived from `name`."""
        while name in self._taken_names:
            name += "_"
        return name

    def _tensor(self, name: str, element: int, value: object) -> object:
        array = tensor_of(f"input '{self.name}'", element, value)
        self.tensors[name] = np.ascontiguousarray(array).reshape(array.shape)
        return (array.dtype.name, array.ndim)


def names_in(graph: onnx.GraphProto) -> set[str]:
    """All names of values in a graph and its subgraphs."""
    found: set[str] = set()
    for inner in all_graphs(graph):
        found.update(value.name for value in inner.input)
        found |= initializers_of(inner).keys()
        found.update(name for node in inner.node for name in node.output)
    return found


def _with_structures(model: onnx.ModelProto, given: Sequence[_Given]) -> onnx.ModelProto:
    """The model with the tensors of structured inputs as inputs, and with nodes that construct the structures."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    names = {item.name for item in given}
    kept = [value for value in model.graph.input if value.name not in names]
    tensors = [
        helper.make_tensor_value_info(name, NUMBERS[array.dtype.name], [None] * array.ndim)
        for item in given
        for name, array in item.tensors.items()
    ]
    made.graph.ClearField("input")
    made.graph.input.extend([*kept, *tensors])
    made.graph.ClearField("node")
    made.graph.node.extend([*(node for item in given for node in item.nodes), *model.graph.node])
    return made

"""Convert PyTorch modules to models with `torch.export`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.torch.graph_signature import used_names
from glow_mlir.frontends.torch.model import TracedModel
from glow_mlir.frontends.torch.renaming import Renaming
from glow_mlir.frontends.torch.traced_graph import (
    Argument,
    Expression,
    Reference,
    SourceLocation,
    TracedGraph,
    TracedNode,
    TracedTensor,
)
from glow_mlir.torch.capture import captured
from glow_mlir.torch.decompositions import decompositions
from glow_mlir.torch.gradient_stops import gradient_stops
from glow_mlir.torch.recurrent_layers import put_recurrences
from glow_mlir.torch.tensors import array_of, listed

if TYPE_CHECKING:
    from glow_mlir.api.onnxruntime.inference_session import InferenceSession

OUTPUT = "output"
"""The name of a single output; several are `output_0`, `output_1` …, or named by the keys of a dictionary."""


def session_of(
    module: torch.nn.Module | ExportedProgram | str | Path,
    example: Sequence[Any] | Any = (),
    *,
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    **options: Any,
) -> InferenceSession:
    """
    The session of a PyTorch module: implements `glow_mlir.from_torch`.
    """
    from glow_mlir.api.onnxruntime.inference_session import InferenceSession

    model = model_of(module, example, keywords=keywords, dynamic_shapes=dynamic_shapes)
    return InferenceSession(model, **options)


def model_of(
    module: torch.nn.Module | ExportedProgram | str | Path,
    example: Sequence[Any] | Any = (),
    *,
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> TracedModel:
    """
    A PyTorch module as a model: implements `glow_mlir.torch.exported`.
    """
    if isinstance(module, str | Path):
        from glow_mlir.torch.program_file import model_of_file

        return model_of_file(Path(module))
    program = _program(module, example, keywords, dynamic_shapes)
    if isinstance(module, ExportedProgram):  # It belongs to the caller.
        program = copy(module)
        program._graph_module = deepcopy(module.graph_module)  # pyright: ignore[reportPrivateUsage]
    put_recurrences(program.graph_module)
    stops = gradient_stops(program)
    functional = program.run_decompositions(cast("Any", decompositions()))
    return _model(functional, _dimension_names(functional, dynamic_shapes), stops)


def _program(
    module: torch.nn.Module | ExportedProgram, example: Any, keywords: Mapping[str, Any] | None, dynamic_shapes: Any
) -> ExportedProgram:
    if isinstance(module, ExportedProgram):
        return module
    arguments = tuple(listed(example))
    try:
        return torch.export.export(module, arguments, dict(keywords or {}), dynamic_shapes=dynamic_shapes)
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        hint = "torch.export.export(module, example) shows where; its documentation says what can be exported"
        raise ModelError(f"PyTorch cannot export the module: {first}", hint=hint) from error


def _model(program: ExportedProgram, dimension_names: Mapping[str, str], stops: tuple[str, ...]) -> TracedModel:
    graph = captured(program.graph)
    signature = program.graph_signature
    constants: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    parameters: dict[str, None] = {}
    first: dict[int, str] = {}
    for item in signature.input_specs:
        name = str(getattr(item.arg, "name", ""))
        if item.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            tensor = _tensor(program, item.kind, str(item.target), bool(item.persistent))
            # Tied parameters become one parameter, under its first name.
            target = first.setdefault(id(tensor), str(item.target))
            renamed[name] = target
            # A copy, because compiled code may be cached under the module's identity.
            constants[target] = np.array(array_of(tensor))
            if item.kind == InputKind.PARAMETER and tensor.requires_grad:
                parameters[target] = None
        elif item.kind != InputKind.USER_INPUT:
            raise UnsupportedError(f"an input of the kind {item.kind.name} is not supported", node=name)
    plain = _without_twins(Renaming(_apart(graph, renamed), dimension_names).graph(_in_order(graph)))
    results = _Results(plain)
    names: list[str] = []
    changes: dict[str, Reference] = {}
    wanted = iter(_output_names(program))
    for item, value in zip(signature.output_specs, plain.outputs, strict=True):
        if item.kind == OutputKind.BUFFER_MUTATION:
            changes[str(item.target)] = results.own(value)
        elif item.kind != OutputKind.USER_OUTPUT:
            raise UnsupportedError(f"an output of the kind {item.kind.name} is not supported")
        else:
            name = next(wanted)
            if value is not None:
                names.append(name)
                results.add(value)
    trained = tuple(name for name in parameters if name in used_names(plain))
    return TracedModel(
        results.graph(), constants, tuple(names), changes=changes, parameters=trained, gradient_stops=stops
    )


def _apart(graph: TracedGraph, renamed: Mapping[str, str]) -> dict[str, str]:
    """New names of inputs, and of nodes with clashing names; raises `ModelError` if an argument has such a name."""
    new = set(renamed.values())
    for item in graph.inputs:
        if item.name in new and item.name not in renamed:
            reason = f"an argument and a parameter or buffer are both called '{item.name}'"
            raise ModelError(reason, hint="give the argument of forward() another name")
    taken = new.union(item.name for item in (*graph.inputs, *graph.nodes))
    found = dict(renamed)
    for node in graph.nodes:
        if node.name in new:
            found[node.name] = next(name for number in count(1) if (name := f"{node.name}_{number}") not in taken)
            taken.add(found[node.name])
    return found


def _without_twins(graph: TracedGraph) -> TracedGraph:
    """A graph without duplicate inputs."""
    return replace(graph, inputs=tuple({item.name: item for item in graph.inputs}.values()))


class _Results:
    """The outputs of a model; each becomes a separate tensor computed by a node."""

    def __init__(self, graph: TracedGraph) -> None:
        self._graph = graph
        self._values = graph.values
        self._taken = {Reference(item.name) for item in graph.inputs}
        self._nodes: list[TracedNode] = []
        self._outputs: list[Reference] = []

    def own(self, value: Argument) -> Reference:
        """
        A node that computes only this value: its own node, a copy if it is already named, or a number as a tensor.
        """
        traced = self._values[value.name][value.index] if isinstance(value, Reference) else value
        name, location = f"output_{len(self._nodes)}", SourceLocation()
        if isinstance(value, Reference) and isinstance(traced, TracedTensor):
            if value not in self._taken:
                self._taken.add(value)
                return value
            node = TracedNode(name, "aten.clone.default", (value,), {}, (traced,), location)
        else:
            number = cast("Argument", traced)
            dtype = "bool" if isinstance(number, bool) else "float32" if isinstance(number, float) else "int64"
            node = TracedNode(name, "aten.scalar_tensor.default", (number,), {}, (TracedTensor(dtype, ()),), location)
        self._nodes.append(node)
        return Reference(name)

    def add(self, value: Argument) -> None:
        """Add a value as the next output."""
        self._outputs.append(self.own(value))

    def graph(self) -> TracedGraph:
        """The graph with these outputs, and without inputs that are neither tensors nor sizes."""
        kept = tuple(item for item in self._graph.inputs if isinstance(item.value, TracedTensor | Expression))
        nodes = (*self._graph.nodes, *self._nodes)
        return replace(self._graph, inputs=kept, nodes=nodes, outputs=tuple(self._outputs))


def _tensor(program: ExportedProgram, kind: InputKind, target: str, is_persistent: bool) -> torch.Tensor:
    """A parameter, buffer or constant of a program."""
    if kind == InputKind.CONSTANT_TENSOR or (kind == InputKind.BUFFER and not is_persistent):
        return cast("torch.Tensor", program.constants[target])
    return program.state_dict[target]


def _in_order(graph: TracedGraph) -> TracedGraph:
    """A graph whose inputs and outputs are arrays in axis order, without views."""

    def plain(value: Any) -> Any:
        if not isinstance(value, TracedTensor):
            return value
        sizes = value.hint[0]
        strides = [1] * len(sizes)
        for axis in reversed(range(len(sizes) - 1)):
            strides[axis] = strides[axis + 1] * max(sizes[axis + 1], 1)
        return replace(value, hint=(sizes, tuple(strides)), view=None)

    inputs = tuple(replace(item, value=plain(item.value)) for item in graph.inputs)
    nodes = tuple(replace(node, results=tuple(map(plain, node.results))) for node in graph.nodes)
    return replace(graph, inputs=inputs, nodes=nodes)


def _output_names(program: ExportedProgram) -> tuple[str, ...]:
    """The names of outputs: keys of dictionaries, or `output`, numbered if there are several."""
    spec = program.call_spec.out_spec
    assert spec is not None
    count = spec.num_leaves
    paths = [path for path, _ in pytree.tree_leaves_with_path(pytree.tree_unflatten(list(range(count)), spec))]
    if count == 1 and not any(map(_keys, paths)):
        return (OUTPUT,)
    names = (".".join(_keys(path)) or OUTPUT for path in paths)
    return tuple(f"{OUTPUT}_{name}" if name.isdecimal() else name for name in names)


def _keys(path: Iterable[Any]) -> list[str]:
    """The keys on the path to an output, ignoring the position in a tuple of one."""
    return [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", "")))) for key in path]


def _dimension_names(program: ExportedProgram, dynamic_shapes: Any) -> dict[str, str]:
    """Symbol of PyTorch → the caller's name of the dimension."""
    found: dict[str, str] = {}
    if dynamic_shapes is None:
        return found
    values = {
        node.name: node.meta["val"]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in program.graph_signature.user_inputs
    }
    for name, axes in _spoken_of(dynamic_shapes, list(values)):
        value = values[name]
        if not isinstance(value, torch.Tensor):
            continue
        for axis, dimension in _entries(axes):
            name = getattr(dimension, "__name__", None)
            size = value.shape[axis]
            if name and isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                found[str(size.node.expr)] = str(name)
    return found


def _spoken_of(dynamic_shapes: Any, inputs: Sequence[str]) -> Iterable[tuple[str, Any]]:
    """Inputs with the description of their axes, given in order or by argument name."""

    def leaves(item: Any) -> list[Any]:
        return [found for found in pytree.tree_leaves(item, is_leaf=_is_axes) if _is_axes(found)]

    if not isinstance(dynamic_shapes, dict):
        yield from zip(inputs, leaves(dynamic_shapes), strict=False)
        return
    for argument, given_sizes in cast("dict[str, Any]", dynamic_shapes).items():
        own = [name for name in inputs if name == argument or name.startswith(f"{argument}_")]
        yield from zip(own, leaves(given_sizes), strict=False)


def _entries(axes: Any) -> Iterable[tuple[int, Any]]:
    """Axes with their descriptions."""
    if isinstance(axes, dict):
        return cast("dict[int, Any]", axes).items()
    return enumerate(cast("Sequence[Any]", axes or ()))


def _is_axes(item: Any) -> bool:
    """Whether an item of `dynamic_shapes` describes the axes of one tensor."""
    if isinstance(item, dict):
        return all(isinstance(key, int) for key in cast("dict[Any, Any]", item))
    if isinstance(item, tuple | list):
        parts = cast("Sequence[Any]", item)
        return bool(parts) and all(part is None or not isinstance(part, dict | tuple | list) for part in parts)
    return item is None

"""Split models with host operators into programs: nodes computed in Python, and models without such nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import numpy as np
import onnx
from onnx import helper

from glow_mlir.errors import HostValuesError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.host_operators.registry import (
    ON_STRINGS,
    RESULTS,
    check_host_operators,
    computed_by_python,
    is_host_operator,
)
from glow_mlir.frontends.onnx.models.order import node_name, sorted_nodes, used_names
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.frontends.onnx.models.tensors import Tensors
from glow_mlir.frontends.onnx.models.traversal import all_nodes
from glow_mlir.frontends.onnx.models.types import tensor_type
from glow_mlir.frontends.onnx.signature import inferred
from glow_mlir.support.dataclass import dataclass

STRING = onnx.TensorProto.STRING


@dataclass(frozen=True)
class HostStep:
    """A node computed in Python, on values by name."""

    node: onnx.NodeProto


@dataclass(frozen=True)
class ModelStep:
    """A model without host operators, on values by name."""

    model: onnx.ModelProto

    @property
    def inputs(self) -> list[str]:
        """The names of its inputs."""
        known = initializers_of(self.model.graph)
        return [value.name for value in self.model.graph.input if value.name not in known]

    @property
    def outputs(self) -> list[str]:
        """The names of its outputs."""
        return [value.name for value in self.model.graph.output]


Step = HostStep | ModelStep


def has_host_values(model: onnx.ModelProto) -> bool:
    """Whether a model takes sequences, optionals or maps, or has host operators."""
    kinds = {value.type.WhichOneof("value") for value in model.graph.input}
    if kinds & {"sequence_type", "optional_type", "map_type"}:
        return True
    nodes = [node for node in all_nodes(model.graph.node) if is_host_operator(node)]
    if any(node.op_type not in ON_STRINGS for node in nodes):
        return True
    return bool(nodes) and _knows_strings(model, nodes) and bool(host_nodes(model))


def check_host_values(model: onnx.ModelProto) -> None:
    """Raise `HostValuesError` for a model that `has_host_values`, and so cannot be compiled as one module."""
    if has_host_values(model):
        check_host_operators(model)
        for node in host_nodes(model):
            raise computed_by_python(node)
        hint = "use InferenceSession; a module holds only tensors"
        raise HostValuesError("inputs are sequences, optionals or maps", hint=hint)


def _knows_strings(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> bool:
    """Whether inputs, outputs, initializers or casts of a model are strings: a quick check."""
    values = (*model.graph.input, *model.graph.output)
    return (
        any(value.type.tensor_type.elem_type == STRING for value in values)
        or any(tensor.data_type == STRING for tensor in model.graph.initializer)
        or any(attribute.name == "to" and attribute.i == STRING for node in nodes for attribute in node.attribute)
    )


def host_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes of a model's graph that are computed in Python; raises `UnsupportedError` for those in subgraphs."""
    elements = _element_types(_inferred(model).graph)
    for node in model.graph.node:
        for attribute in node.attribute:
            for inner in all_nodes([n for graph in (attribute.g, *attribute.graphs) for n in graph.node]):
                if is_host_operator(inner) and inner.op_type not in ON_STRINGS:
                    reason = f"{inner.op_type} runs in Python, which cannot be inside machine code"
                    hint = f"move it out of the body of {node.op_type}"
                    raise UnsupportedError(reason, node=node_name(inner), hint=hint)
    return [node for node in model.graph.node if is_host_operator(node) and _is_on_host(node, elements)]


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inferred types; result types of onnxruntime's operators, unknown to ONNX, are declared first."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in model.graph.node:
        if (element := RESULTS.get(node.op_type)) is not None and is_host_operator(node):
            copy.graph.value_info.append(onnx.ValueInfoProto(name=node.output[0], type=tensor_type(element)))
    return inferred(copy)


def _element_types(graph: onnx.GraphProto) -> dict[str, int]:
    """The known ONNX data types of the tensors of a graph, by name."""
    values = (*graph.input, *graph.value_info, *graph.output)
    found = {value.name: value.type.tensor_type.elem_type for value in values}
    return found | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _is_on_host(node: onnx.NodeProto, elements: dict[str, int]) -> bool:
    """Whether a host operator's node is computed in Python; `ON_STRINGS` only on strings, or for casts to strings."""
    if node.op_type not in ON_STRINGS:
        return True
    has_strings = elements.get(node.input[0]) == STRING
    if node.op_type != "Cast":
        return has_strings
    to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
    return has_strings != (to == STRING)


@dataclass
class _Splitter:
    """
    Split a model into stages; odd stages are computed in Python.

    A node is in the first stage of its kind that is not before the stage of any of its operands.
    """

    model: onnx.ModelProto
    stages: dict[str, int] = field(default_factory=dict[str, int])
    """Value → the stage that computes it."""
    nodes: dict[int, list[onnx.NodeProto]] = field(default_factory=dict[int, list[onnx.NodeProto]])

    def run(self) -> Iterator[Step]:
        graph = self.model.graph
        hosted = {name for node in host_nodes(self.model) for name in node.output}
        for node in graph.node:
            stage = max((self.stages.get(name, 0) for name in used_names(node)), default=0)
            if stage % 2 != any(name in hosted for name in node.output):
                stage += 1
            self.nodes.setdefault(stage, []).append(node)
            self.stages.update((name, stage) for name in node.output if name)
        types = self._types()
        for stage in sorted(self.nodes):
            if stage % 2:
                yield from map(HostStep, self.nodes[stage])
            elif (part := self._part(stage, types)).graph.output:
                yield ModelStep(part)

    def _types(self) -> dict[str, onnx.ValueInfoProto]:
        """The known types of values, by name."""
        graph = _inferred(self.model).graph
        return {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}

    def _part(self, stage: int, types: dict[str, onnx.ValueInfoProto]) -> onnx.ModelProto:
        """The nodes of a stage as a model; its outputs are the values used by later stages and by callers."""
        own, graph = self.nodes[stage], self.model.graph
        made = {name for node in own for name in node.output}
        used = list(dict.fromkeys(name for node in own for name in used_names(node) if name))
        constants = initializers_of(graph)
        behind = [node for number, nodes in self.nodes.items() if number > stage for node in nodes]
        later = {name for node in behind for name in used_names(node)}
        wanted = later | {value.name for value in graph.output}
        inputs = [self._typed(name, types) for name in used if name not in made and name not in constants]
        outputs = [types.get(name) or onnx.ValueInfoProto(name=name) for name in dict.fromkeys(made) if name in wanted]
        part = onnx.ModelProto()
        part.CopyFrom(self.model)
        for group in ("node", "input", "output", "value_info", "initializer", "sparse_initializer"):
            part.graph.ClearField(group)
        part.graph.node.extend(own)
        part.graph.input.extend(inputs)
        part.graph.output.extend(sorted(outputs, key=lambda value: value.name))
        part.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name in used)
        part.graph.sparse_initializer.extend(t for t in graph.sparse_initializer if t.values.name in used)
        return part

    def _typed(self, name: str, types: dict[str, onnx.ValueInfoProto]) -> onnx.ValueInfoProto:
        """The type of a value passed between stages; raises `UnsupportedError` if it is unknown."""
        value = types.get(name)
        if value is None or value.type.WhichOneof("value") is None:
            hint = "add it to the value_info of the model, as onnx.shape_inference does"
            raise UnsupportedError(f"'{name}', which Python computes, has unknown type", hint=hint)
        return value


def host_program(model: onnx.ModelProto) -> list[Step]:
    """
    Split a model, whose functions are inlined, into steps, in order of execution.

    Raises `ModelError` for an inconsistent model, and `UnsupportedError` for one that cannot be split.
    """
    graph = model.graph
    known = {value.name for value in graph.input} | initializers_of(graph).keys()
    sorted_nodes(graph.node, known.__contains__)
    known |= {name for node in graph.node for name in node.output}
    for value in graph.output:
        if value.name not in known:
            hint = "the model is cut off or edited wrongly"
            raise ModelError(f"output '{value.name}' is computed by no node", hint=hint)
    return list(_Splitter(_with_initializers(model)).run())


def _with_initializers(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with initializers in place of Constant nodes, because every part can have its own copy."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    for node in model.graph.node:
        tensor = _constant(node) if node.op_type == "Constant" and not node.domain else None
        if tensor is None:
            copy.graph.node.append(node)
        else:
            tensor.name = node.output[0]
            copy.graph.initializer.append(tensor)
    return copy


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The value of a Constant node; `None` for a sparse one."""
    if len(node.attribute) != 1:
        return None
    (attribute,) = node.attribute
    value = helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
        return tensor
    kinds = {
        "value_float": onnx.TensorProto.FLOAT,
        "value_floats": onnx.TensorProto.FLOAT,
        "value_int": onnx.TensorProto.INT64,
        "value_ints": onnx.TensorProto.INT64,
        "value_string": STRING,
        "value_strings": STRING,
    }
    if attribute.name not in kinds:
        return None
    is_list = attribute.name.endswith("s")
    return helper.make_tensor("", kinds[attribute.name], [len(value)] if is_list else [], value if is_list else [value])


def constant_arrays(model: onnx.ModelProto, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The named initializers as arrays, for host operators; raises `ModelError` for damaged ones."""
    tensors, wanted = Tensors(), set(names)
    return {
        name: tensors.array(tensor, f"initializer '{name}'")
        for name, tensor in initializers_of(model.graph).items()
        if name in wanted and isinstance(tensor, onnx.TensorProto)
    }

"""Training forms of ONNX models: nodes that behave differently in training, and initializers that are parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.onnx.models.domains import plain_domain
from glow_mlir.frontends.onnx.models.inlining import inlined
from glow_mlir.frontends.onnx.models.order import node_name
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.support.dataclass import dataclass

_FLOATS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16})

_BY_MODE = 14
"""The first opset in which `training_mode` makes a batch normalization use the statistics of its batch."""

_BY_OPERAND = 12
"""The first opset in which an operand makes Dropout drop elements."""

_INFERENCE_ALONE = 7
"""The first opset in which Dropout never drops elements."""

_TRAINING = "training_mode.of.training"
"""The name of the initializer for Dropout's operand `training_mode`."""


@dataclass(frozen=True)
class TrainingForm:
    """A model in training; `kept` maps each added output to the initializer that it updates."""

    model: onnx.ModelProto
    kept: dict[str, str]


def separated(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    A copy of a model in its inference form, with functions inlined, in which an `Identity` of a vector becomes a
    separate initializer.

    Exporters such as PyTorch's write initializers of equal value once: untrained biases, scales and statistics.
    Matrices stay shared, because that is intended, as for an embedding and the output layer of a decoder.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(inlined(model))
    graph = copy.graph
    known = {tensor.name: tensor for tensor in graph.initializer}
    kept: list[onnx.NodeProto] = []
    for node in graph.node:
        origin = known.get(node.input[0]) if node.op_type == "Identity" and len(node.input) == 1 else None
        if origin is None or len(origin.dims) != 1 or plain_domain(node.domain):
            kept.append(node)
            continue
        tensor = onnx.TensorProto()
        tensor.CopyFrom(origin)
        tensor.name = node.output[0]
        known[tensor.name] = tensor
        graph.initializer.append(tensor)
    del graph.node[:]
    graph.node.extend(kept)
    _infer(copy)
    return copy


def _infer(model: onnx.ModelProto) -> None:
    """
    Switch nodes that were exported in training mode to inference.

    Normalizations whose running statistics are used do not change.
    """
    graph, opset = model.graph, _opset(model)
    read = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
    for node in graph.node:
        if plain_domain(node.domain):
            continue
        if node.op_type == "BatchNormalization" and opset >= _BY_MODE and read.isdisjoint(node.output[1:]):
            _forget(node, "training_mode")
            del node.output[1:]
        elif node.op_type == "Dropout" and opset >= _BY_OPERAND:
            del node.input[2:]


def _opset(model: onnx.ModelProto) -> int:
    return next((item.version for item in model.opset_import if not plain_domain(item.domain)), 1)


def training_form(model: onnx.ModelProto) -> TrainingForm:
    """
    A copy of a model in its training form.

    Batch normalizations use the statistics of the batch, and update the running ones; Dropout drops elements. Nodes in
    branches and loops do not change.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    opset = _opset(copy)
    kept: dict[str, str] = {}
    for node in copy.graph.node:
        if plain_domain(node.domain):
            continue
        if node.op_type == "BatchNormalization":
            kept |= _in_training(node, opset)
        elif node.op_type == "Dropout":
            _dropping(node, opset)
    if any(_TRAINING in node.input for node in copy.graph.node):
        copy.graph.initializer.append(numpy_helper.from_array(np.array(True), _TRAINING))
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in kept)
    return TrainingForm(copy, kept)


def _in_training(node: onnx.NodeProto, opset: int) -> dict[str, str]:
    """Let a normalization use the statistics of its batch; returns output → running statistic."""
    if opset >= _BY_MODE:
        _forget(node, "training_mode")
        node.attribute.append(helper.make_attribute("training_mode", 1))
    elif opset < _INFERENCE_ALONE:
        _forget(node, "is_test")
    statistics = list(node.input[3:5])
    wanted = [f"{name}.next" for name in statistics]
    if opset < _BY_MODE:  # All five results are required, including those of the batch.
        wanted += [f"{name}.of.batch" for name in statistics]
    given = [*node.output[1:], *[""] * len(wanted)]
    results = [result or wish for result, wish in zip(given, wanted, strict=False)]
    first = node.output[0]
    del node.output[:]
    node.output.extend([first, *results])
    return dict(zip(results[:2], statistics, strict=True))


def _forget(node: onnx.NodeProto, name: str) -> None:
    """Remove an attribute from a node."""
    attributes = [item for item in node.attribute if item.name != name]
    del node.attribute[:]
    node.attribute.extend(attributes)


def _dropping(node: onnx.NodeProto, opset: int) -> None:
    """
    Let a Dropout drop elements.

    Raises `UnsupportedError` for opset 7 to 11, which has inference only, unless the ratio is 0.
    """
    if opset >= _BY_OPERAND:
        inputs = [*node.input, "", ""][:2]
        del node.input[:]
        node.input.extend([*inputs, _TRAINING])
    elif opset < _INFERENCE_ALONE:
        _forget(node, "is_test")
    elif next((item.f for item in node.attribute if item.name == "ratio"), 0.5) > 0:
        hint = f"export the model for opset {_BY_OPERAND} or later"
        raise UnsupportedError(f"Dropout of opset {opset} has no training", node=node_name(node), hint=hint)


def statistics_of(graph: onnx.GraphProto) -> set[str]:
    """The initializers that batch normalizations update."""
    nodes = (node for node in graph.node if node.op_type == "BatchNormalization" and not plain_domain(node.domain))
    return {name for node in nodes for name in node.input[3:5]} & set(initializers_of(graph))


_SETTINGS: dict[str, Sequence[int]] = {
    "Clip": (1, 2),
    "DequantizeLinear": (1, 2),
    "MaxRoiPool": (1,),
    "OneHot": (1, 2),
    "Pad": (1, 2),
    "QuantizeLinear": (1, 2),
    "Resize": (1, 2),
    "RoiAlign": (1,),
    "Upsample": (1,),
}
"""Operator → the positions of operands that are settings, not parameters."""


def _settings_of(graph: onnx.GraphProto) -> set[str]:
    """The names of operands that are settings."""
    return {
        node.input[position]
        for node in graph.node
        for position in _SETTINGS.get(node.op_type, ())
        if position < len(node.input) and not plain_domain(node.domain)
    }


def parameters_of(graph: onnx.GraphProto) -> Sequence[str]:
    """
    The initializers that training changes by default.

    These are float tensors of rank 1 or more, except for running statistics and settings such as the scales of a
    Resize.
    """
    statistics = statistics_of(graph) | _settings_of(graph)
    return [
        tensor.name
        for tensor in graph.initializer
        if tensor.data_type in _FLOATS and len(tensor.dims) and tensor.name not in statistics
    ]

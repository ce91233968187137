"""ONNX models as they are trained: nodes that compute otherwise then, and initializers that are parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.onnx.domains import plain_domain
from glow_mlir.frontends.onnx.inlining import inlined
from glow_mlir.frontends.onnx.order import node_name
from glow_mlir.frontends.onnx.sparse import initializers_of
from glow_mlir.support.dataclass import dataclass

_FLOATS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16})

_BY_MODE = 14
"""The first opset in which `training_mode` says that a batch normalization takes statistics of its batch."""

_BY_OPERAND = 12
"""The first opset in which an operand says that Dropout drops elements."""

_INFERENCE_ALONE = 7
"""The first opset in which Dropout never does."""

_TRAINING = "training_mode.of.training"
"""The initializer that says so."""


@dataclass(frozen=True)
class TrainingForm:
    """A model in training: `kept` has, for each output that the model did not have, the initializer that it becomes."""

    model: onnx.ModelProto
    kept: dict[str, str]


def separated(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    A copy of a model as it infers, without functions of its own, in which what `Identity` gives of a vector is an
    initializer too.

    Exporters write those of equal values once, as PyTorch's do with biases, scales and statistics that nothing has
    trained yet. Matrices that are equal are meant to be one, as an embedding and the layer behind a decoder.
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
    Let nodes that compute as in training, where a model was exported so, compute as in inference.

    Normalizations whose running statistics somebody reads stay as they are.
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
    A copy of a model as it is in training.

    Normalizations of batches take the statistics of these, and update the running ones; Dropout drops elements. Nodes
    in branches and loops stay as they are.
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
    """Let a normalization take the statistics of its batch; gives what its running statistics become."""
    if opset >= _BY_MODE:
        _forget(node, "training_mode")
        node.attribute.append(helper.make_attribute("training_mode", 1))
    elif opset < _INFERENCE_ALONE:
        _forget(node, "is_test")
    statistics = list(node.input[3:5])
    wanted = [f"{name}.next" for name in statistics]
    if opset < _BY_MODE:  # All results, those of the batch among them, are there or none.
        wanted += [f"{name}.of.batch" for name in statistics]
    given = [*node.output[1:], *[""] * len(wanted)]
    results = [result or wish for result, wish in zip(given, wanted, strict=False)]
    first = node.output[0]
    del node.output[:]
    node.output.extend([first, *results])
    return dict(zip(results[:2], statistics, strict=True))


def _forget(node: onnx.NodeProto, name: str) -> None:
    """Take an attribute away from a node."""
    attributes = [item for item in node.attribute if item.name != name]
    del node.attribute[:]
    node.attribute.extend(attributes)


def _dropping(node: onnx.NodeProto, opset: int) -> None:
    """
    Let a Dropout drop elements.

    Raises `UnsupportedError` for one of opset 7 to 11, which is for inference alone, unless it drops nothing.
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
    """The initializers that normalizations of batches update."""
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
"""Operator → which of its operands say how it works, and are no parameters."""


def _settings_of(graph: onnx.GraphProto) -> set[str]:
    """What says how operators work."""
    return {
        node.input[position]
        for node in graph.node
        for position in _SETTINGS.get(node.op_type, ())
        if position < len(node.input) and not plain_domain(node.domain)
    }


def parameters_of(graph: onnx.GraphProto) -> Sequence[str]:
    """
    The initializers that training changes unless it is told others: tensors of floats with an axis or more, but for
    running statistics of batches and what says how operators work, as the scales of a Resize.
    """
    statistics = statistics_of(graph) | _settings_of(graph)
    return [
        tensor.name
        for tensor in graph.initializer
        if tensor.data_type in _FLOATS and len(tensor.dims) and tensor.name not in statistics
    ]

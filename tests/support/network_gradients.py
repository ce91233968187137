"""Gradients of random networks by their input and all their parameters, in f64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from models import random_inputs
from onnx import TensorProto, numpy_helper
from random_networks import network
from slopes import Sloped, check_slopes, sloped

from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.frontends.onnx.training_form import parameters_of

SINGLE: Mapping[str, Sequence[int]] = {"Resize": (2,)}
"""Operator → operands that are f32 in models of f64 as well."""


def double_network(seed: int) -> onnx.ModelProto:
    """The random network of a seed in f64."""
    model = network(seed)
    kept = {node.input[place] for node in model.graph.node for place in SINGLE.get(node.op_type, ())}
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in kept:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return model


def sloped_network(model: onnx.ModelProto, seed: int) -> tuple[Sloped, dict[str, np.ndarray]]:
    """A model with its gradients, and what it takes for its input and those parameters that nodes read."""
    read = {name for node in model.graph.node for name in node.input}
    parameters = [name for name in parameters_of(model.graph) if name in read]
    case = sloped(import_model(model, state=dict.fromkeys(parameters, True)), seed)
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    inputs = random_inputs(model, np.random.default_rng([seed, 1]))
    return case, inputs | {name: arrays[name] for name in parameters}


def check_network(seed: int) -> bool:
    """Compare the gradients of the random network of a seed with differences, where it has no corner."""
    case, inputs = sloped_network(double_network(seed), seed)
    return check_slopes(case, inputs, seed)

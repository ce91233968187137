"""onnxruntime's activation operators, and activations that are built into other operators."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import activations as act
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator

# Each is Y = activation(X [+ bias]).


@onnx_operator("Gelu", domain=ONNXRUNTIME)
def gelu(node: Node) -> SSAValue:
    """GELU by the error function."""
    return node.emit(act.GeluOp, node.input())


@onnx_operator("BiasGelu", domain=ONNXRUNTIME)
def bias_gelu(node: Node) -> SSAValue:
    """GELU of x + bias, by the error function."""
    return node.emit(act.GeluOp, node.emit(binary.AddOp, node.input(0), node.input(1)))


@onnx_operator("FastGelu", domain=ONNXRUNTIME)
def fast_gelu(node: Node) -> SSAValue:
    """GELU of x, or x + bias, by the hyperbolic tangent."""
    value, bias = node.input(0), node.optional(1)
    if bias is not None:
        value = node.emit(binary.AddOp, value, bias)
    return node.emit(act.GeluOp, value, approximate="tanh")


@onnx_operator("QuickGelu", domain=ONNXRUNTIME)
def quick_gelu(node: Node) -> SSAValue:
    """x · sigmoid(alpha · x)."""
    return node.emit(act.SwishOp, node.input(), alpha=node.float("alpha", 1.702))


# Built into other operators

_BUILT_IN: Mapping[str, tuple[type[HighOp], Mapping[str, float]]] = {
    "Elu": (act.EluOp, {"alpha": 1.0}),
    "HardSigmoid": (act.HardSigmoidOp, {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu": (act.LeakyReluOp, {"alpha": 0.01}),
    "Relu": (act.ReluOp, {}),
    "Selu": (act.SeluOp, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "Sigmoid": (act.SigmoidOp, {}),
    "Softplus": (act.SoftplusOp, {}),
    "Softsign": (act.SoftsignOp, {}),
    "Tanh": (act.TanhOp, {}),
    "ThresholdedRelu": (act.ThresholdedReluOp, {"alpha": 1.0}),
}
"""Name → operator, and its parameters in order of `activation_params`, with their defaults."""

CLIP = "Clip"


def activated(node: Node, value: SSAValue) -> SSAValue:
    """Apply the node's built-in activation, the attribute `activation`, if there is one."""
    name = node.text("activation", "")
    if not name:
        return value
    given = node.floats("activation_params", ())
    if name == CLIP:
        limits = (*given, *(-np.inf, np.inf)[len(given) :])[:2]
        return node.emit(binary.ClipOp, value, *(node.constant(limit, like=value) for limit in limits))
    if name not in _BUILT_IN:
        raise node.unsupported(f"the activation '{name}' is not supported, only {', '.join([*_BUILT_IN, CLIP])}")
    operator, defaults = _BUILT_IN[name]
    parameters = dict(defaults)
    for position, (parameter, default) in enumerate(defaults.items()):
        found = given[position] if position < len(given) else default
        parameters[parameter] = node.float(f"activation_{parameter}", found)
    return node.emit(operator, value, **parameters)

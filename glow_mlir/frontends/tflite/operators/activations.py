"""Activation functions: operators of their own, and those in the options of others."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import EluOp, HardSwishOp, LeakyReluOp, PReluOp, ReluOp
from glow_mlir.dialects.glow_high.elementwise_binary import ClipOp
from glow_mlir.frontends.tflite.node import LIMITS, TfliteNode, tflite_operator


def activated(node: TfliteNode, value: SSAValue, activation: str) -> SSAValue:
    """Floats behind an activation function."""
    if activation not in LIMITS:
        raise node.unsupported(f"has the activation function {activation}")
    low, high = LIMITS[activation]
    if activation == "none":
        return value
    if not np.isfinite(high):
        return node.emit(ReluOp, value)
    return node.emit(ClipOp, value, node.splat(low, value), node.splat(high, value))


@tflite_operator("RELU")
def relu(node: TfliteNode) -> SSAValue:
    """The larger one of a number and 0."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    return activated(node, node.input(0), "relu")


@tflite_operator("PRELU")
def prelu(node: TfliteNode) -> SSAValue:
    """Negative numbers times a slope."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    return node.emit(PReluOp, node.input(0), node.input(1))


@tflite_operator("RELU6", "RELU_N1_TO_1")
def limited(node: TfliteNode) -> SSAValue:
    """A number from 0 to 6, or from -1 to 1."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    return activated(node, node.input(0), node.kind.lower())


@tflite_operator("LEAKY_RELU")
def leaky_relu(node: TfliteNode) -> SSAValue:
    """Negative numbers times a factor."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    return node.emit(LeakyReluOp, node.input(0), alpha=node.options.real(0))


@tflite_operator("ELU", "HARD_SWISH")
def plain(node: TfliteNode) -> SSAValue:
    """An exponential below 0, or x · ReLU6(x + 3) / 6."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    return node.emit({"ELU": EluOp, "HARD_SWISH": HardSwishOp}[node.kind], node.input(0))

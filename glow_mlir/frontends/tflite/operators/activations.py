"""Activation functions: operators of their own, and those in the options of others."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import PReluOp, ReluOp
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

"""Activation functions: operators of their own, and those in the options of others."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import LeakyReluOp, PReluOp, ReluOp
from glow_mlir.dialects.glow_high.elementwise_binary import ClipOp, LessOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.frontends.tflite.node import LIMITS, TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.rescaling import centred, limited, ratio, rescaled, scaled_by


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


@tflite_operator("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
def relu(node: TfliteNode) -> SSAValue:
    """A number limited to 0 and above, or to 0 to 6, -1 to 1, or 0 to 1."""
    activation = node.kind.lower()
    if node.is_float():
        return activated(node, node.input(0), activation)
    return rescaled(node, centred(node, 0), np.array([ratio(node)]), activation)


@tflite_operator("PRELU")
def prelu(node: TfliteNode) -> SSAValue:
    """Negative numbers times a slope."""
    if node.is_float():
        return node.emit(PReluOp, node.input(0), node.input(1))
    value = centred(node, 0)
    product = node.emit(MulOp, value, centred(node, 1))
    own, slope, out = (node.quantization(item).scales[0] for item in (node.tensor(0), node.tensor(1), node.output()))
    sloped = scaled_by(node, product, float(own * slope / out))
    return _by_sign(node, value, scaled_by(node, value, ratio(node)), sloped)


def _by_sign(node: TfliteNode, value: SSAValue, above: SSAValue, below: SSAValue) -> SSAValue:
    """One of two integers, of i32, as results: the second one below 0."""
    is_below = node.emit(LessOp, value, node.splat(0, value))
    return limited(node, node.emit(WhereOp, is_below, below, above))


@tflite_operator("LEAKY_RELU")
def leaky_relu(node: TfliteNode) -> SSAValue:
    """Negative numbers times a factor."""
    alpha = node.options.real(0)
    if node.is_float():
        return node.emit(LeakyReluOp, node.input(0), alpha=alpha)
    value, scales = centred(node, 0), [node.quantization(item).scales[0] for item in (node.tensor(0), node.output())]
    sloped = scaled_by(node, value, abs(float(scales[0] * np.float32(alpha) / scales[1])))
    sloped = node.emit(NegOp, sloped) if alpha < 0 else sloped
    return _by_sign(node, value, scaled_by(node, value, ratio(node)), sloped)

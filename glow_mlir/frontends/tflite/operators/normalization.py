"""Normalization along the last axis, running sums, and the response of neighbours."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, MaxOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS
from glow_mlir.dialects.glow_high.normalization import LogSoftmaxOp, LrnOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp, ReduceSumOp
from glow_mlir.dialects.shapes import normalize_axis
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator

MIN_NORM = 1e-6
"""The norm by which shorter rows are divided."""


@tflite_operator("L2_NORMALIZATION")
def l2_normalization(node: TfliteNode) -> SSAValue:
    """Rows along the last axis divided by their length."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    value = node.input(0)
    total = node.emit(ReduceSumOp, node.emit(MulOp, value, value), axes=[-1], keepdims=True)
    length = node.emit(FLOAT_FUNCTIONS["sqrt"], total)
    return node.emit(DivOp, value, node.emit(MaxOp, length, node.splat(MIN_NORM, value)))


@tflite_operator("LOG_SOFTMAX")
def log_softmax(node: TfliteNode) -> SSAValue:
    """The logarithm of softmax along the last axis."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    return node.emit(LogSoftmaxOp, node.input(0), axis=-1)


@tflite_operator("LOCAL_RESPONSE_NORMALIZATION")
def local_response(node: TfliteNode) -> SSAValue:
    """Numbers divided by a power of the sum of squares of their neighbours along the last axis."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    options = node.options
    size = 2 * options.number(0, "i") + 1
    bias, alpha, beta = (options.real(field) for field in (1, 2, 3))
    return node.emit(LrnOp, node.input(0), size=size, bias=bias, alpha=alpha * size, beta=beta, axis=-1)


@tflite_operator("CUMSUM")
def running_sum(node: TfliteNode) -> SSAValue:
    """The sum of all elements up to each one along an axis."""
    axis = normalize_axis(node.whole(1, "the axis"), len(node.shape(0)))
    flags = {"exclusive": bool(node.options.number(0, "?")), "reverse": bool(node.options.number(1, "?"))}
    return node.emit(CumSumOp, node.input(0), axis=axis, **flags)

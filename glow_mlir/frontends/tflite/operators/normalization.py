"""Normalization along the last axis, running sums, and the response of neighbours."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, DivOp, MaxOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import FLOAT_FUNCTIONS
from glow_mlir.dialects.glow_high.normalization import LogSoftmaxOp, LrnOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp, ReduceSumOp
from glow_mlir.dialects.shapes import normalize_axis
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.interpolation import number
from glow_mlir.frontends.tflite.operators.rescaling import centred
from glow_mlir.frontends.tflite.operators.run_time_fixed_point import root_of_reciprocal

MIN_NORM = 1e-6
"""The norm by which shorter rows are divided."""


@tflite_operator("L2_NORMALIZATION")
def l2_normalization(node: TfliteNode) -> SSAValue:
    """Rows along the last axis divided by their length."""
    if node.is_quantized():
        return _of_integers(node)
    value = node.input(0)
    total = node.emit(ReduceSumOp, node.emit(MulOp, value, value), axes=[-1], keepdims=True)
    length = node.emit(FLOAT_FUNCTIONS["sqrt"], total)
    return node.emit(DivOp, value, node.emit(MaxOp, length, node.splat(MIN_NORM, value)))


UNIT_BITS = 7
"""The fraction bits of quantized rows that are divided by their length."""


def _of_integers(node: TfliteNode) -> SSAValue:
    """Rows of 8 bits: the reciprocal of a length is computed in fixed point."""
    dtype = node.tensor(0).dtype
    if dtype not in ("int8", "uint8") or node.output().dtype != dtype:
        raise node.unsupported(f"of {dtype} is not supported")
    value = centred(node, 0)
    total = node.emit(ReduceSumOp, node.emit(MulOp, value, value), axes=[-1], keepdims=True)
    multiplier, shift = root_of_reciprocal(node, total)
    fine = value if dtype == "int8" else node.emit(MulOp, value, number(node, 1 << UNIT_BITS))
    shift = node.emit(AddOp, shift, number(node, 31 - (UNIT_BITS if dtype == "int8" else 0)))
    found = node.emit(IntegerRescaleOp, fine, multiplier, shift, to=i32, rounding="twice")
    moved = found if dtype == "int8" else node.emit(AddOp, found, number(node, 1 << UNIT_BITS))
    clipped = node.emit(ClipOp, moved, *(number(node, limit) for limit in node.limits(node.output())))
    return node.cast(clipped, ELEMENT_TYPES[dtype])


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

"""Folds along axes, and softmax."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.reductions import (
    ArgMaxOp,
    ArgMinOp,
    ReduceMaxOp,
    ReduceMeanOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceSumOp,
)
from glow_mlir.dialects.shapes import Shape, element_of, normalize_axis
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.rescaling import (
    BITS,
    centred,
    quantized_multipliers,
    ratio,
    rescaled,
    rescaled_twice,
)

FOLDS: dict[str, type[HighOp]] = {
    "MEAN": ReduceMeanOp,
    "SUM": ReduceSumOp,
    "REDUCE_PROD": ReduceProdOp,
    "REDUCE_MAX": ReduceMaxOp,
    "REDUCE_MIN": ReduceMinOp,
    "REDUCE_ANY": ReduceMaxOp,
    "REDUCE_ALL": ReduceMinOp,
}


def _axes(node: TfliteNode) -> Shape:
    """The axes of a fold, in ascending order."""
    rank = len(node.shape(0))
    return tuple(sorted({normalize_axis(axis, rank) for axis in node.integers(1, "the axes").reshape(-1).tolist()}))


@tflite_operator(*FOLDS)
def fold(node: TfliteNode) -> SSAValue:
    """A fold along axes; quantized values have a mean and a sum, and those of one scale other folds."""
    axes, value = _axes(node), node.input(0)
    if node.is_quantized():
        if node.kind == "MEAN":
            return _integer_mean(node, axes)
        if node.kind == "SUM":
            total = node.emit(ReduceSumOp, centred(node, 0), axes=axes, keepdims=True)
            return node.emit(ReshapeOp, rescaled(node, total, np.array([ratio(node)])), shape=node.output().shape)
        if node.kind == "REDUCE_PROD":
            raise node.unsupported("of quantized values is not supported")
    if node.kind == "MEAN" and not node.is_float():
        count = math.prod(node.shape(0)[axis] for axis in axes)
        total = node.emit(ReduceSumOp, node.cast(value, i64), axes=axes, keepdims=True)
        value = node.cast(node.emit(DivOp, total, node.splat(count, i64)), element_of(value))
        return node.emit(ReshapeOp, value, shape=node.output().shape)
    return node.emit(ReshapeOp, node.emit(FOLDS[node.kind], value, axes=axes, keepdims=True), shape=node.output().shape)


def _integer_mean(node: TfliteNode, axes: Shape) -> SSAValue:
    """
    The mean of quantized values, whose multiplier is that of the scales divided by the number of elements.

    The division is that of TensorFlow Lite's `reduce.cc`: the multiplier is shifted up before, as far as it fits.
    """
    count = math.prod(node.shape(0)[axis] for axis in axes)
    own, out = (node.quantization(tensor).scales.astype(np.float64) for tensor in (node.tensor(0), node.output()))
    if not count or not out.all():
        raise node.unsupported("of no elements, or of the scale 0, is not supported")
    multipliers, shifts = quantized_multipliers(own / out)
    left = BITS - int(shifts[0])
    more = min(count.bit_length() - 1, 32, BITS + left)
    multiplier, shift = np.array((int(multipliers[0]) << more) // count), np.array(BITS - left + more)
    total = node.emit(ReduceSumOp, centred(node, 0), axes=axes, keepdims=True)
    found = rescaled_twice(node, total, multiplier, shift, node.type_of(node.output()))
    return node.emit(ReshapeOp, node.stored(found), shape=node.output().shape)


@tflite_operator("ARG_MAX", "ARG_MIN")
def position(node: TfliteNode) -> SSAValue:
    """The index of the largest or the smallest element along an axis."""
    axis = node.whole(1, "the axis")
    operator = {"ARG_MAX": ArgMaxOp, "ARG_MIN": ArgMinOp}[node.kind]
    value = node.cast(node.input(0), i32) if node.tensor(0).dtype == "bool" else node.input(0)
    found = node.emit(operator, value, axis=axis, keepdims=False)
    return node.emit(CastOp, found, to=i32) if node.output().dtype == "int32" else found

"""Tensors of shapes, of one number, of numbers in a row, and of another type."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import EqualOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import BitCastOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator


@tflite_operator("SHAPE")
def shape(node: TfliteNode) -> SSAValue:
    """The sizes of the operand."""
    return node.constant(np.array(node.shape(0), node.output().dtype))


@tflite_operator("RANK")
def rank(node: TfliteNode) -> SSAValue:
    """The number of axes of the operand."""
    return node.constant(np.array(len(node.shape(0)), np.int32))


@tflite_operator("FILL")
def fill(node: TfliteNode) -> SSAValue:
    """One number in a shape."""
    return node.emit(ExpandOp, node.emit(ReshapeOp, node.input(1), shape=()), shape=node.shape_by(0))


@tflite_operator("ZEROS_LIKE")
def zeros_like(node: TfliteNode) -> SSAValue:
    """Zeros in the shape of the operand."""
    return node.splat(0, node.input(0), node.shape(0))


@tflite_operator("RANGE")
def range_(node: TfliteNode) -> SSAValue:
    """The numbers from a start by a step up to an end, which is not one of them; all are constants."""
    start, end, step = (node.known(position, "a bound").reshape(()) for position in range(3))
    if not step:
        raise node.unsupported("has a step of 0")
    with np.errstate(over="ignore"):
        ratio = (end - start) / step if start.dtype.kind == "f" else (end.item() - start.item()) / step.item()
    if not np.isfinite(ratio):
        raise node.unsupported(f"has the bounds {start} and {end}")
    count = max(0, int(np.ceil(ratio)))
    node.check_size(count)
    steps = np.full(count, step, start.dtype)
    steps[:1] = start
    return node.constant(np.cumsum(steps, dtype=start.dtype))


@tflite_operator("BROADCAST_ARGS")
def broadcast_args(node: TfliteNode) -> SSAValue:
    """The shape to which two shapes, vectors of integers, broadcast."""
    if any(len(node.shape(position)) != 1 for position in range(2)):
        raise node.unsupported(f"of {list(node.shape(0))} and {list(node.shape(1))}, which are no vectors")
    longest = max(node.shape(0)[0], node.shape(1)[0])
    shapes: list[SSAValue] = []
    for position in range(2):
        missing = longest - node.shape(position)[0]
        value = node.input(position)
        shapes.append(node.emit(ConcatOp, [node.splat(1, value, (missing,)), value], axis=0) if missing else value)
    is_one = node.emit(EqualOp, shapes[0], node.splat(1, shapes[0]))
    return node.emit(WhereOp, is_one, shapes[1], shapes[0])


@tflite_operator("CAST")
def cast(node: TfliteNode) -> SSAValue:
    """The numbers in another type; fractions are cut off."""
    dtype = node.output().dtype
    if dtype not in ELEMENT_TYPES:
        raise node.unsupported(f"to {dtype} is not supported")
    return node.cast(node.input(0), ELEMENT_TYPES[dtype])


@tflite_operator("BITCAST")
def bit_cast(node: TfliteNode) -> SSAValue:
    """The bits of numbers as those of another type of the same width."""
    dtype = node.output().dtype
    if dtype not in ELEMENT_TYPES or np.dtype(dtype).itemsize != np.dtype(node.tensor(0).dtype).itemsize:
        raise node.unsupported(f"of {node.tensor(0).dtype} as {dtype} is not supported")
    return node.emit(BitCastOp, node.input(0), to=ELEMENT_TYPES[dtype])

"""Operators that move elements; quantized ones keep their scale."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.quantization import LookupOp
from glow_mlir.dialects.shapes import normalize_axis
from glow_mlir.frontends.tflite.file import FREE
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.interpolation import rounded
from glow_mlir.support.symbols import product_of, quotient


@tflite_operator("RESHAPE")
def reshape(node: TfliteNode) -> SSAValue:
    """The elements in the shape of the result, or in that of the second operand if they fit it."""
    count, shape = product_of(node.shape(0)), node.shape_by(1)
    if shape.count(FREE) == 1:
        size = quotient(count, product_of([item for item in shape if item != FREE]))
        shape = shape if size is None else tuple(size if item == FREE else item for item in shape)
    fits = product_of(shape) == count
    return node.emit(ReshapeOp, node.input(0), shape=shape if fits else node.output().shape)


@tflite_operator("SQUEEZE", "EXPAND_DIMS")
def axes_of_one(node: TfliteNode) -> SSAValue:
    """The elements with fewer or more axes of one element."""
    return node.emit(ReshapeOp, node.input(0), shape=node.output().shape)


@tflite_operator("TRANSPOSE")
def transpose(node: TfliteNode) -> SSAValue:
    """Axes permuted."""
    axes, rank = node.integers(1, "the permutation").reshape(-1).tolist(), len(node.shape(0))
    return node.emit(TransposeOp, node.input(0), permutation=[normalize_axis(axis, rank) for axis in axes])


@tflite_operator("PAD", "PADV2")
def pad(node: TfliteNode) -> SSAValue:
    """A border of a value, which is 0 if none is given: the zero point of quantized values."""
    widths = node.integers(1, "the width of the border")
    if widths.shape != (len(node.shape(0)), 2) or (widths < 0).any():
        raise node.unsupported(f"the border {widths.tolist()} does not fit {len(node.shape(0))} axes")
    found = node.tensor(0).quantization
    if node.has(2):
        value = node.emit(ReshapeOp, node.input(2), shape=())
    else:
        value = node.splat(0 if found is None else int(found.zero_points[0]), node.input(0))
    return node.emit(PadOp, node.input(0), value, pads=[*widths[:, 0].tolist(), *widths[:, 1].tolist()])


@tflite_operator("CONCATENATION")
def concatenation(node: TfliteNode) -> SSAValue:
    """Parts one behind the other along an axis; those of uint8 of other scales are rescaled to that of the result."""
    if not node.is_float() and node.activation != "none":
        raise node.unsupported(f"of {node.tensor(0).dtype} with an activation function is not supported")
    parts = [_in_scale_of_result(node, position) for position in range(node.count)]
    return activated(node, node.emit(ConcatOp, parts, axis=node.options.number(0, "i")), node.activation)


def _in_scale_of_result(node: TfliteNode, position: int) -> SSAValue:
    """An operand in the scale of the result; the reference computes other scales of uint8 in f32."""
    if node.output().quantization is None or not _differs(node, position):
        return node.input(position)
    own, out = node.quantization(node.tensor(position)), node.quantization(node.output())
    if node.tensor(position).dtype != "uint8" or node.output().dtype != "uint8":
        raise node.unsupported(f"of {node.tensor(position).dtype} of several scales is not supported")
    scale = own.scales[0] * (np.float32(1) / np.float32(node.scale(node.output())))
    moved = np.arange(256).astype(np.float32) * scale - np.float32(own.zero_points[0]) * scale
    table = (rounded(moved) + out.zero_points[0]).clip(0, 255).astype(np.uint8)
    return node.emit(LookupOp, node.input(position), node.constant(table, f"{node.name}.table"))


def _differs(node: TfliteNode, position: int) -> bool:
    """Whether an operand is quantized otherwise than the result."""
    own, out = node.tensor(position).quantization, node.output().quantization
    if own is None or out is None:
        return own is not out
    return not (np.array_equal(own.scales, out.scales) and np.array_equal(own.zero_points, out.zero_points))

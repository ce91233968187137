"""A layer of filters of rank 1 over time (Nakkiran et al., 2015): its state are the features of the last steps."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i16, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.frontends.tflite.file import Tensor
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.hybrid import hybrid_product, weight_scales
from glow_mlir.frontends.tflite.operators.rescaling import quantized_multipliers, rescaled

INPUT, FEATURES, TIME, BIAS, STATE = range(5)
"""The operands: [B, K], weights [F, K] and [F, steps], a bias [U], the state [B, F · steps]; F is U times the rank."""


@tflite_operator("SVDF")
def svdf(node: TfliteNode) -> SSAValue:
    """Features of the operand behind those of the last steps, their products with weights over time, and their sums."""
    (filters, steps), batch, rank = node.shape(TIME), node.shape(INPUT)[0], node.step(0)
    if filters % rank or node.shape(STATE) != (batch, filters * steps):
        raise node.unsupported(f"{filters} filters of rank {rank} do not fit the state {list(node.shape(STATE))}")
    state = node.emit(ReshapeOp, node.state(STATE), shape=(batch, filters, steps))
    older = node.emit(SliceOp, state, starts=[0, 0, 1], ends=[batch, filters, steps])
    newest = node.emit(ReshapeOp, _features(node), shape=(batch, filters, 1))
    state = node.emit(ConcatOp, [older, newest], axis=2)
    node.keep(STATE, state)
    products = node.emit(MulOp, node.cast(state, i32) if node.is_quantized() else state, _weights_over_time(node))
    total = node.emit(ReduceSumOp, products, axes=[2], keepdims=False)
    total = node.emit(ReshapeOp, total, shape=(batch, filters // rank, rank))
    total = node.emit(ReduceSumOp, total, axes=[2], keepdims=False)
    total = node.emit(AddOp, total, node.input(BIAS)) if node.has(BIAS) else total
    if not node.is_quantized():
        return activated(node, total, node.activation_at(1))
    return rescaled(node, total, np.array([_factor(node, STATE, TIME, node.output())]))


def _factor(node: TfliteNode, left: int, right: int, out: Tensor) -> float:
    """The product of the scales of two operands divided by that of another tensor."""
    first, second = (node.scale(node.tensor(position)) for position in (left, right))
    return first * second / node.scale(out)


def _features(node: TfliteNode) -> SSAValue:
    """The features [B, F] of the operand."""
    if not node.is_quantized():
        if node.is_float(FEATURES):
            return node.emit(MatMulOp, node.input(INPUT), node.input(FEATURES), transpose_right=True)
        return hybrid_product(node, node.input(INPUT), FEATURES, bool(node.options.number(2, "?")))
    kinds = tuple(node.tensor(position).dtype for position in (INPUT, FEATURES, TIME, STATE))
    if kinds != ("int8", "int8", "int16", "int16"):
        raise node.unsupported(f"of {', '.join(kinds)} is not supported")
    product = node.emit(MatMulOp, node.quantized(INPUT), node.input(FEATURES), transpose_right=True, to=i32)
    multipliers, shifts = quantized_multipliers(np.array([_factor(node, INPUT, FEATURES, node.tensor(STATE))]))
    operands = (
        node.constant(item[0], f"{node.name}.{role}") for item, role in ((multipliers, "multiplier"), (shifts, "shift"))
    )
    return node.emit(IntegerRescaleOp, product, *operands, to=i16, rounding="twice")


def _weights_over_time(node: TfliteNode) -> SSAValue:
    """The weights [F, steps] in the type of products."""
    if node.is_quantized():
        return node.cast(node.input(TIME), i32)
    if node.is_float(TIME):
        return node.input(TIME)
    scale = weight_scales(node, TIME)[0]
    return node.constant(node.known(TIME, "the weights").astype(np.float32) * scale, f"{node.name}.weights")

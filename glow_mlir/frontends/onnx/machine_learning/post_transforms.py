"""Post-transforms of the scores of ai.onnx.ml's models, selected by the attribute `post_transform`."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SigmoidOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, GreaterOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, ExpOp, LogOp, NegOp, SqrtOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceSumOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node

_PROBIT = 0.147
"""The constant of Winitzki's formula for the inverse of erf."""

_ZERO = 1e-7
"""The largest magnitude that SOFTMAX_ZERO treats as zero."""


def transformed(node: Node, value: SSAValue, word: str) -> SSAValue:
    """Apply a post-transform to scores [N, size]."""
    if word == "NONE":
        return value
    if word == "LOGISTIC":
        return node.emit(SigmoidOp, value)
    if word == "SOFTMAX":
        return node.emit(SoftmaxOp, value, axis=1)
    if word == "SOFTMAX_ZERO":
        return _softmax_zero(node, value)
    if word == "PROBIT":
        return _probit(node, value)
    raise ModelError(f"{node.kind}: there is no post_transform '{word}'", node=node.name)


def _softmax_zero(node: Node, value: SSAValue) -> SSAValue:
    """Softmax over nonzero elements; a row of zeros gives NaN, as in onnxruntime."""
    largest = node.emit(ReduceMaxOp, value, axes=[1], keepdims=True)
    counts = node.emit(GreaterOp, node.emit(AbsOp, value), node.splat(_ZERO, value))
    power = node.emit(ExpOp, node.emit(SubOp, value, largest))
    total = node.emit(ReduceSumOp, node.emit(WhereOp, counts, power, node.splat(0.0, value)), axes=[1], keepdims=True)
    small = node.emit(MulOp, value, node.emit(ExpOp, node.emit(NegOp, largest)))
    return node.emit(DivOp, node.emit(WhereOp, counts, power, small), total)


def _probit(node: Node, value: SSAValue) -> SSAValue:
    """The square root of 2 times erf⁻¹(2p − 1), by Winitzki's formula, as in onnxruntime."""

    def number(of: float) -> SSAValue:
        return node.splat(of, value)

    x = node.emit(SubOp, node.emit(MulOp, value, number(2.0)), number(1.0))
    product = node.emit(MulOp, node.emit(SubOp, number(1.0), x), node.emit(AddOp, number(1.0), x))
    log = node.emit(LogOp, product)
    middle = node.emit(AddOp, node.emit(MulOp, log, number(0.5)), number(2.0 / (3.14159 * _PROBIT)))
    root = node.emit(
        SqrtOp, node.emit(SubOp, node.emit(MulOp, middle, middle), node.emit(MulOp, log, number(1.0 / _PROBIT)))
    )
    size = node.emit(MulOp, node.emit(SqrtOp, node.emit(SubOp, root, middle)), number(2.0**0.5))
    is_negative = node.emit(GreaterOp, number(0.0), x)
    return node.emit(WhereOp, is_negative, node.emit(NegOp, size), size)

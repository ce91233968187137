"""Normalization over batches: for inference, for training, and its gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, sqrt
from glow_mlir.dialects.glow_high.normalization import BatchNormalizationOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.shapes import rank_of, shape_of, sizes_of
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator


def epsilon(node: StablehloNode) -> float:
    """What is added to variances."""
    found = node.properties["epsilon"]
    assert isinstance(found, FloatAttr)
    return found.value.data


def normalized(node: StablehloNode, *operands: SSAValue) -> SSAValue:
    """An operand normalized by scale, offset, mean and variance."""
    axis = node.integer("feature_index")
    return node.emit(BatchNormalizationOp, *operands, epsilon=epsilon(node), axis=axis)


def others(node: StablehloNode) -> tuple[int, ...]:
    """The axes but that of the features."""
    return tuple(axis for axis in range(rank_of(node.input())) if axis != node.integer("feature_index"))


def per_feature(node: StablehloNode, value: SSAValue) -> Tensor:
    """A vector over the features along their axis, for formulas."""
    shape, feature = sizes_of(node.input()), node.integer("feature_index")
    found = node.reshaped(value, [size if axis == feature else 1 for axis, size in enumerate(shape)])
    return node.formulas.of(found)


@stablehlo_operator("batch_norm_inference")
def batch_norm_inference(node: StablehloNode) -> SSAValue:
    """A batch normalized by given means and variances."""
    return normalized(node, *node.inputs())


@stablehlo_operator("batch_norm_training")
def batch_norm_training(node: StablehloNode) -> Sequence[Value]:
    """A batch normalized by its own means and variances, which are results as well."""
    value, scale, offset = node.inputs()
    axes = others(node)
    mean = node.emit(ReduceMeanOp, value, axes=axes, keepdims=False)
    rest = node.formulas.of(value) - per_feature(node, mean)
    variance = node.emit(ReduceMeanOp, node.formulas.value(rest * rest), axes=axes, keepdims=False)
    return [normalized(node, value, scale, offset, mean, variance), mean, variance]


@stablehlo_operator("batch_norm_grad")
def batch_norm_grad(node: StablehloNode) -> Sequence[Value]:
    """The gradients of a batch normalized by its own means and variances, of its scale and of its offset."""
    value, scale, mean, variance, gradient = node.inputs()
    axes, formulas = others(node), node.formulas
    inverse = 1.0 / sqrt(per_feature(node, variance) + epsilon(node))
    rest = (formulas.of(value) - per_feature(node, mean)) * inverse
    of_scale = _summed(node, formulas.value(formulas.of(gradient) * rest), axes)
    of_offset = _summed(node, gradient, axes)
    count = float(math.prod(shape_of(value)[axis] for axis in axes))
    shared = (per_feature(node, of_offset) + rest * per_feature(node, of_scale)) / count
    of_value = (formulas.of(gradient) - shared) * inverse * per_feature(node, scale)
    return [formulas.value(of_value), of_scale, of_offset]


def _summed(node: StablehloNode, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    return node.emit(ReduceSumOp, value, axes=tuple(axes), keepdims=False)

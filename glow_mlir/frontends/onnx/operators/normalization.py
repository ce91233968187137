"""ONNX's normalization operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high import normalization as ops
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import ReciprocalOp, SqrtOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp
from glow_mlir.dialects.shapes import element_of, rank_of
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.data_movement import first_coerced_axis
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import product_of


def _is_training_by_test(node: Node) -> bool:
    """Up to opset 6: training unless `is_test`."""
    return not node.flag("is_test")


def _is_training_by_results(node: Node) -> bool:
    """Up to opset 13: training if results other than the first are used."""
    return any(node.wants(position) for position in range(1, 5))


def _is_training_by_mode(node: Node) -> bool:
    """From opset 14 on: training if `training_mode`."""
    return node.flag("training_mode")


def _batch_normalization(is_training: Callable[[Node], bool]) -> Callable[[Node], Sequence[SSAValue]]:
    """
    Batch normalization with the given mean and variance or, in training, those of the batch; channels are axis 1.

    Training also returns the running statistics and, up to opset 13, those of the batch. Without `spatial`, up to
    opset 8, each element has statistics of its own.
    """

    def importer(node: Node) -> Sequence[SSAValue]:
        if node.rank() == 1:  # A batch of one channel.
            (count,) = node.sizes()
            node.inputs[0] = node.emit(ReshapeOp, node.input(), shape=(count, 1))
            result, *statistics = importer(node)
            return (node.emit(ReshapeOp, result, shape=(count,)), *statistics)
        mean, variance = node.input(3), node.input(4)
        statistics: Sequence[SSAValue] = ()
        if is_training(node):
            old = mean, variance
            mean, variance = _batch_statistics(node)
            running = [_blend(node, before, now) for before, now in zip(old, (mean, variance), strict=True)]
            statistics = (*running, mean, variance)
        operands = (node.input(0), node.input(1), node.input(2), mean, variance)
        epsilon = node.float("epsilon", 1e-5)
        if not node.flag("spatial", True):
            return (_normalized(node, operands, epsilon), *statistics)
        return (node.emit(ops.BatchNormalizationOp, *operands, epsilon=epsilon, axis=1), *statistics)

    return importer


for _since, _is_training in ((1, _is_training_by_test), (7, _is_training_by_results), (14, _is_training_by_mode)):
    onnx_operator("BatchNormalization", since=_since)(_batch_normalization(_is_training))


def _normalized(node: Node, operands: Sequence[SSAValue], epsilon: float) -> SSAValue:
    """Normalize a batch whose elements each have their own scale, offset, mean and variance."""
    x, scale, offset, mean, variance = operands
    deviation = node.emit(SqrtOp, node.emit(AddOp, variance, node.constant(epsilon, like=variance)))
    centred = node.emit(DivOp, node.emit(SubOp, x, mean), deviation)
    return node.emit(AddOp, node.emit(MulOp, centred, scale), offset)


def _batch_statistics(node: Node) -> tuple[SSAValue, SSAValue]:
    """Mean and variance of each channel over the batch and all positions, or of each element unless `spatial`."""
    x, shape = node.input(), node.shape()
    axes = [axis for axis in range(len(shape)) if axis != 1] if node.flag("spatial", True) else [0]
    difference = node.emit(SubOp, x, node.emit(ReduceMeanOp, x, axes=axes))
    squares = node.emit(MulOp, difference, difference)
    mean = node.emit(ReduceMeanOp, x, axes=axes, keepdims=False)
    return mean, node.emit(ReduceMeanOp, squares, axes=axes, keepdims=False)


def _blend(node: Node, before: SSAValue, now: SSAValue) -> SSAValue:
    """Update a running statistic: `momentum · before + (1 − momentum) · now`."""
    momentum = node.float("momentum", 0.9)
    old = node.emit(MulOp, before, node.constant(momentum, like=before))
    return node.emit(AddOp, old, node.emit(MulOp, now, node.constant(1.0 - momentum, like=now)))


def _over_rows(operator: type[ops.AlongAxis]) -> Callable[[Node], SSAValue]:
    """The form up to opset 12: all axes from `axis` on are merged, by a reshape if several of them are wider than 1."""

    def coerced(node: Node) -> SSAValue:
        shape, axis = node.sizes(), first_coerced_axis(node)
        wide = [other for other in range(axis, len(shape)) if shape[other] != 1]
        if shape and axis < len(shape) and len(wide) <= 1:
            return node.emit(operator, node.input(), axis=wide[0] if wide else axis)
        rows = node.emit(ReshapeOp, node.input(), shape=(product_of(shape[:axis]), product_of(shape[axis:])))
        return node.emit(ReshapeOp, node.emit(operator, rows, axis=1), shape=shape)

    return coerced


for _name, _operator in {
    "Softmax": ops.SoftmaxOp,
    "LogSoftmax": ops.LogSoftmaxOp,
    "Hardmax": ops.HardmaxOp,
}.items():
    onnx_operator(_name)(_over_rows(_operator))


@onnx_operator("LRN")
def lrn(node: Node) -> SSAValue:
    """Local response normalization; channels are axis 1."""
    return node.emit(ops.LrnOp, node.input(), **ATTRIBUTE_MAPS["LRN"].import_from(node), axis=1)


@onnx_operator("InstanceNormalization")
def instance_normalization(node: Node) -> SSAValue:
    """Instance normalization; channels are axis 1."""
    return node.emit(ops.InstanceNormalizationOp, *node.present(), epsilon=node.float("epsilon", 1e-5), axis=1)


def _group_normalization(node: Node, scale: SSAValue, offset: SSAValue) -> SSAValue:
    properties = ATTRIBUTE_MAPS["GroupNormalization"].import_from(node)
    return node.emit(ops.GroupNormalizationOp, node.input(), scale, offset, **properties, axis=1)


@onnx_operator("GroupNormalization", since=18)
def group_normalization_by_group(node: Node) -> SSAValue:
    """The form up to opset 20: scale and bias have one element per group, repeated for its channels."""
    channels, groups = node.shape()[1], node.int("num_groups")

    def repeated(value: SSAValue) -> SSAValue:
        column = node.emit(ReshapeOp, value, shape=(groups, 1))
        return node.emit(ReshapeOp, node.emit(ExpandOp, column, shape=(groups, channels // groups)), shape=(channels,))

    return _group_normalization(node, repeated(node.input(1)), repeated(node.input(2)))


@onnx_operator("GroupNormalization", since=21)
def group_normalization(node: Node) -> SSAValue:
    """The form with one element of scale and bias per channel."""
    return _group_normalization(node, node.input(1), node.input(2))


@onnx_operator("LayerNormalization")
def layer_normalization(node: Node) -> Sequence[SSAValue]:
    """One operator, or separate steps if the mean or inverse deviation is used."""
    if not node.wants(1) and not node.wants(2):
        properties = ATTRIBUTE_MAPS["LayerNormalization"].import_from(node)
        return node.emit_all(ops.LayerNormalizationOp, *node.present(), **properties)
    axis, epsilon = node.int("axis", -1), node.float("epsilon", 1e-5)
    found = Statistics.of(node, node.input(), axis, epsilon)
    return found.normalized(node, node.input(1), node.optional(2)), found.mean, found.inverse


@dataclass(frozen=True)
class Statistics:
    """Mean and inverse deviation of a value over all axes from one on, computed in f32 or wider."""

    value: SSAValue
    """The value minus its mean, if centred."""
    mean: SSAValue
    inverse: SSAValue
    element: Attribute
    """The element type of the original value."""

    @staticmethod
    def of(node: Node, value: SSAValue, axis: int, epsilon: float, is_centred: bool = True) -> Statistics:
        """Compute the statistics of a value; deviations are from 0 unless `is_centred`."""
        element = element_of(value)
        wide = node.cast(value, f32) if byte_width(element) < 4 else value
        axes = range(axis % max(rank_of(value), 1), rank_of(value))
        mean = node.emit(ReduceMeanOp, wide, axes=axes)
        difference = node.emit(SubOp, wide, mean) if is_centred else wide
        variance = node.emit(ReduceMeanOp, node.emit(MulOp, difference, difference), axes=axes)
        deviation = node.emit(SqrtOp, node.emit(AddOp, variance, node.constant(epsilon, like=variance)))
        return Statistics(difference, mean, node.emit(ReciprocalOp, deviation), element)

    def normalized(self, node: Node, scale: SSAValue, bias: SSAValue | None = None) -> SSAValue:
        """The normalized value times a scale, plus a bias, in the original element type."""
        wide = element_of(self.value)
        result = node.emit(MulOp, node.emit(MulOp, self.value, self.inverse), node.cast(scale, wide))
        if bias is not None:
            result = node.emit(AddOp, result, node.cast(bias, wide))
        return node.cast(result, self.element)


@onnx_operator("RMSNormalization")
def rms_normalization(node: Node) -> SSAValue:
    """Layer normalization without subtraction of the mean."""
    axis, epsilon = node.int("axis", -1), node.float("epsilon", 1e-5)
    return node.emit(ops.RmsNormalizationOp, node.input(0), node.input(1), axis=axis, epsilon=epsilon)

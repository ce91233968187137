"""Normalization: softmax and its kin, statistics over batches, layers, instances, groups and neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.expressions import (
    Tensor,
    converted,
    equal,
    exp,
    fma,
    indices,
    log,
    position,
    power,
    reduce_fmax,
    reduce_sum,
    sqrt,
)
from glow_mlir.dialects.glow_high.access import AccessMap, free_axes, plain, starred
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.expressed import Expressed, axis_names, broadcast_access, mean_along
from glow_mlir.dialects.glow_high.ranges import NEGATIVE, UNIT, Range
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.operand_types import FLOATS, TENSOR
from glow_mlir.dialects.properties import float_prop, int_prop, integer, number
from glow_mlir.dialects.shapes import (
    element_of,
    normalize_axis,
    rank_of,
    require,
    require_broadcast_to,
    require_equal,
    shape_of,
    size_along,
    sizes_of,
    tensor,
)
from glow_mlir.support.symbols import Size, Sizes
from glow_mlir.xdsl_patches.definitions import op_definition


def same_as_input(op: HighOp, input_: SSAValue, what: str) -> tuple[TensorType[Attribute], ...]:
    """The type of an operand, which is the result type; raises where other operands have another element type."""
    element = element_of(input_)
    for operand in op.inputs():
        require(element_of(operand) == element, f"{what}: operands have different element types")
    return (tensor(sizes_of(input_), element),)


def require_channels(operands: tuple[SSAValue, ...], channels: Size) -> None:
    """Raise unless each operand is a vector with one element per channel."""
    for operand in operands:
        require_equal(sizes_of(operand), (channels,), f"expected shape ({channels},), got {sizes_of(operand)}")
        shape_of(operand)


class AlongAxis(HighOp):
    """A function of all elements along `axis`, with a result for each of them; floats only."""

    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)

    input = operand_def(FLOATS)
    axis = int_prop(-1)
    result = result_def(TENSOR)

    def folded(self) -> tuple[str, ...]:
        """The dimension that the function is taken along; a scalar has none."""
        names = axis_names(rank_of(self.input))
        return (names[normalize_axis(integer(self.axis), len(names))],) if names else ()

    def notation(self) -> Signature:
        """Input and result have the same axes."""
        names = axis_names(rank_of(self.input))
        return Signature((Access("input", names),), Access("result", names))

    def access_map(self) -> AccessMap:
        rank = rank_of(self.input)
        return self.aligned((normalize_axis(integer(self.axis), rank),) if rank else ())

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        normalize_axis(integer(self.axis), rank_of(self.input))
        return same_as_input(self, self.input, "the operator")


@op_definition
class SoftmaxOp(AlongAxis, Expressed):
    """
    exp(x) divided by the sum of exp(x) along `axis` (ONNX Softmax), without overflow.

    ```mlir
    %y = glow_high.softmax %x {axis = 1} : tensor<1x1000xf32>
    ```
    """

    name = "glow_high.softmax"

    def expression(self, *operands: Tensor) -> Tensor:
        (x,) = operands
        # Where an element is no number, the sum of the exponentials tells.
        power = exp(x - reduce_fmax(x, self.folded()))
        return power * (1.0 / reduce_sum(power, self.folded()))

    def result_range(self, operands: Sequence[Range]) -> Range:
        return UNIT


@op_definition
class LogSoftmaxOp(AlongAxis, Expressed):
    """The logarithm of softmax along `axis` (ONNX LogSoftmax), without overflow."""

    name = "glow_high.log_softmax"

    def expression(self, *operands: Tensor) -> Tensor:
        (x,) = operands
        peak = reduce_fmax(x, self.folded())
        # Two differences: the sum of both subtrahends would lose the smaller one's digits.
        return x - peak - log(reduce_sum(exp(x - peak), self.folded()))

    def result_range(self, operands: Sequence[Range]) -> Range:
        return NEGATIVE


@op_definition
class HardmaxOp(AlongAxis, Expressed):
    """1 at the first largest element along `axis`, 0 elsewhere (ONNX Hardmax)."""

    name = "glow_high.hardmax"

    def expression(self, *operands: Tensor) -> Tensor:
        (x,) = operands
        if not (axes := self.folded()):
            return converted(equal(x, x), x.element)
        return converted(equal(indices(x, axes[0]), position(x, axes[0])), x.element)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return UNIT


@op_definition
class BatchNormalizationOp(Expressed):
    """
    (x - mean) / sqrt(variance + `epsilon`) · scale + offset for each channel (ONNX BatchNormalization, inference).

    Channels lie along `axis`; the other four operands have one element a channel.
    """

    name = "glow_high.batch_normalization"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)

    input = operand_def(FLOATS)
    scale = operand_def(FLOATS)
    offset = operand_def(FLOATS)
    mean = operand_def(FLOATS)
    variance = operand_def(FLOATS)
    epsilon = float_prop(1e-5)
    axis = int_prop(-1)
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        axes = free_axes(rank_of(self.input))
        channel = (axes[normalize_axis(integer(self.axis), len(axes))],)
        return AccessMap((axes, *(channel,) * 4), (axes,), 0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        channels = sizes_of(self.input)[normalize_axis(integer(self.axis), rank_of(self.input))]
        require_channels(self.inputs()[1:], channels)
        return same_as_input(self, self.input, "batch_normalization")

    def notation(self) -> Signature:
        names = axis_names(rank_of(self.input))
        channels = (names[normalize_axis(integer(self.axis), len(names))],)
        parameters = (Access(name, channels) for name in ("scale", "offset", "mean", "variance"))
        return Signature((Access("input", names), *parameters), Access("result", names))

    def expression(self, *operands: Tensor) -> Tensor:
        x, scale, offset, mean, variance = operands
        factor = scale / sqrt(variance + number(self.epsilon))
        return x * factor + (offset - mean * factor)


class OverImages(Expressed):
    """Mean and variance of each image, not of the batch: axis 0 is the batch, channels lie along `axis`."""

    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)
    MIXES_CHANNELS: ClassVar[bool] = False
    """Whether they are taken over several channels."""

    input = operand_def(FLOATS)
    scale = operand_def(FLOATS)
    offset = operand_def(FLOATS)
    epsilon = float_prop(1e-5)
    axis = int_prop(-1)
    result = result_def(TENSOR)

    def channel_axis(self) -> int:
        """The axis of the channels, counted from the front; raises where it is the batch."""
        axis = normalize_axis(integer(self.axis), rank_of(self.input))
        require(axis > 0, "axis 0 is the batch, channels lie along another one")
        return axis

    def access_map(self) -> AccessMap:
        rank, channels = rank_of(self.input), self.channel_axis()
        axes = ("n", *starred(free_axes(rank)[1:], range(rank - 1)))
        if not self.MIXES_CHANNELS:
            axes = (*axes[:channels], plain(axes[channels]), *axes[channels + 1 :])
        return AccessMap((axes, *((axes[channels],),) * 2), (axes,))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        require_channels(self.inputs()[1:], sizes_of(self.input)[self.channel_axis()])
        return same_as_input(self, self.input, "the operator")

    def grouped_shape(self) -> Sizes:
        """The shape of the input with the channels split into groups and the channels of each, if they are."""
        return sizes_of(self.input)

    def views(self) -> Sequence[Sizes]:
        shape, axis = self.grouped_shape(), self.channel_axis()
        channels = shape[axis : axis + 1 + len(shape) - rank_of(self.input)]
        return [shape, channels, channels]

    def notation(self) -> Signature:
        input_, channels, _ = self.views()
        names, axis = axis_names(len(input_)), self.channel_axis()
        own = names[axis : axis + len(channels)]
        return Signature((Access("input", names), Access("scale", own), Access("offset", own)), Access("result", names))

    def expression(self, *operands: Tensor) -> Tensor:
        x, scale, offset = operands
        shape = self.grouped_shape()
        names = axis_names(len(shape))
        axes = [axis for axis in range(1, len(shape)) if axis != self.channel_axis()]
        along, sizes = [names[axis] for axis in axes], tuple(shape[axis] for axis in axes)
        difference = x - mean_along(x, along, sizes)
        factor = 1.0 / sqrt(mean_along(difference * difference, along, sizes) + number(self.epsilon))
        return fma(difference, factor * scale, offset)


@op_definition
class InstanceNormalizationOp(OverImages):
    """
    (x - mean) / sqrt(variance + `epsilon`) · scale + offset by image and channel (ONNX InstanceNormalization).

    Mean and variance are taken over all axes but the batch and `axis`.
    """

    name = "glow_high.instance_normalization"


@op_definition
class GroupNormalizationOp(OverImages):
    """
    (x - mean) / sqrt(variance + `epsilon`) · scale + offset for `groups` of channels (ONNX GroupNormalization).

    Mean and variance are taken over the channels of a group and all axes but the batch. `scale` and `offset` have one
    element a channel.
    """

    name = "glow_high.group_normalization"
    MIXES_CHANNELS: ClassVar[bool] = True

    groups = int_prop()

    def grouped_shape(self) -> Sizes:
        """The shape of the input with the channels split into groups and the channels of each."""
        shape, axis, groups = sizes_of(self.input), self.channel_axis(), integer(self.groups)
        channels = size_along(self.input, axis)
        require(groups > 0 and channels % groups == 0, f"{groups} groups do not divide {channels} channels")
        return (*shape[:axis], groups, channels // groups, *shape[axis + 1 :])

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        self.grouped_shape()
        return OverImages.infer_types(self)


def trailing_axes(value: SSAValue, axis: Attribute) -> tuple[int, ...]:
    """All axes of `value` from the one that the property `axis` names."""
    rank = rank_of(value)
    return tuple(range(normalize_axis(integer(axis), rank), rank))


def broadcasting_notation(operands: Sequence[SSAValue]) -> Signature:
    """The notation of an operator whose operands broadcast to the first, which is as large as the result."""
    sizes = sizes_of(operands[0])
    accesses = [broadcast_access(f"operand{number}", value, sizes) for number, value in enumerate(operands)]
    return Signature(tuple(accesses), Access("result", axis_names(len(sizes))))


def mean_of(value: SSAValue, x: Tensor, axes: Sequence[int]) -> Tensor:
    """The mean along some axes of an expression `x` with the shape of `value`."""
    names, sizes = axis_names(rank_of(value)), sizes_of(value)
    return mean_along(x, [names[axis] for axis in axes], tuple(sizes[axis] for axis in axes))


def require_broadcast(operands: tuple[SSAValue, ...], shape: Sizes) -> None:
    """Raise unless each operand broadcasts to `shape`."""
    for operand in operands:
        require_broadcast_to(sizes_of(operand), shape, f"shape {sizes_of(operand)} does not broadcast to {shape}")


@op_definition
class LayerNormalizationOp(Expressed):
    """
    (x - mean) / sqrt(variance + `epsilon`) · scale + bias over all axes from `axis` on (ONNX LayerNormalization).

    `scale` and `bias` broadcast to the input.

    ```mlir
    %y = glow_high.layer_normalization %x, %scale, %bias {epsilon = 1.0e-12} : tensor<1x128x768xf32>
    ```
    """

    name = "glow_high.layer_normalization"

    input = operand_def(FLOATS)
    scale = operand_def(FLOATS)
    bias = opt_operand_def(FLOATS)
    axis = int_prop(-1)
    epsilon = float_prop(1e-5)
    result = result_def(TENSOR)

    def normalized_axes(self) -> tuple[int, ...]:
        """The axes over which mean and variance are taken."""
        return trailing_axes(self.input, self.axis)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        self.normalized_axes()
        require_broadcast(self.inputs()[1:], sizes_of(self.input))
        return same_as_input(self, self.input, "layer_normalization")

    def access_map(self) -> AccessMap:
        return self.aligned(self.normalized_axes())

    def notation(self) -> Signature:
        return broadcasting_notation(self.inputs())

    def expression(self, *operands: Tensor) -> Tensor:
        x, scale, *bias = operands
        axes = self.normalized_axes()
        difference = x - mean_of(self.input, x, axes)
        factor = 1.0 / sqrt(mean_of(self.input, difference * difference, axes) + number(self.epsilon))
        value = difference * factor
        return fma(value, scale, bias[0]) if bias else value * scale


@op_definition
class RmsNormalizationOp(Expressed):
    """
    x / sqrt(mean of squares + `epsilon`) · scale over all axes from `axis` on (ONNX RMSNormalization).

    `scale` broadcasts to the input.
    """

    name = "glow_high.rms_normalization"

    input = operand_def(FLOATS)
    scale = operand_def(FLOATS)
    axis = int_prop(-1)
    epsilon = float_prop(1e-5)
    result = result_def(TENSOR)

    def normalized_axes(self) -> tuple[int, ...]:
        """The axes over which the mean is taken."""
        return trailing_axes(self.input, self.axis)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        self.normalized_axes()
        require_broadcast(self.inputs()[1:], sizes_of(self.input))
        return same_as_input(self, self.input, "rms_normalization")

    def access_map(self) -> AccessMap:
        return self.aligned(self.normalized_axes())

    def notation(self) -> Signature:
        return broadcasting_notation(self.inputs())

    def expression(self, *operands: Tensor) -> Tensor:
        x, scale = operands
        squares = mean_of(self.input, x * x, self.normalized_axes())
        return x * (1.0 / sqrt(squares + number(self.epsilon))) * scale


@op_definition
class LrnOp(AlongAxis, Expressed):
    """
    x / (`bias` + `alpha` / `size` · sum of squares)^`beta` (ONNX LRN).

    The sum runs over `size` neighbouring channels along `axis`, of which floor((size - 1) / 2) precede the element.

    ```mlir
    %y = glow_high.lrn %x {size = 5, axis = 3} : tensor<1x55x55x96xf32>
    ```
    """

    name = "glow_high.lrn"

    size = int_prop()
    alpha = float_prop(1e-4)
    beta = float_prop(0.75)
    bias = float_prop(1.0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        require(integer(self.size) > 0, "size must be positive")
        require(rank_of(self.input) > 0, "channels lie along an axis, which a scalar has not")
        return AlongAxis.infer_types(self)

    def reach(self) -> tuple[int, int]:
        """How many channels before and after its own each sum takes in."""
        return (integer(self.size) - 1) // 2, integer(self.size) // 2

    def read_operands(self) -> Sequence[int]:
        return (0, 0)  # As it is, and in windows.

    def notation(self) -> Signature:
        names, (channel,), (before, _) = axis_names(rank_of(self.input)), self.folded(), self.reach()
        near = tuple(f"{name} + k - {before}" if name == channel else name for name in names)
        accesses = Access("input", names), Access("input", near)
        return Signature(accesses, Access("result", names), {"k": integer(self.size)})

    def expression(self, *operands: Tensor) -> Tensor:
        x, near = operands
        squares = reduce_sum(near * near, "k")
        base = squares * (number(self.alpha) / integer(self.size)) + number(self.bias)
        return x * power(base, -number(self.beta))

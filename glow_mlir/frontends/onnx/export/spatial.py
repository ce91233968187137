"""Export of convolutions, pooling, normalization and resizing; ONNX's layout is channels-first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype, storage_of
from glow_mlir.dialects.glow_high import convolution, normalization, pooling
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.properties import flag, floats, integer, ints, number, text
from glow_mlir.dialects.shapes import Shape, element_of, normalize_axis, rank_of, shape_of
from glow_mlir.frontends.onnx.export.quantized_products import product, zero_point_name
from glow_mlir.frontends.onnx.export.writer import Writer
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.ir.registry import onnx_export


def _inverse(permutation: Shape) -> Shape:
    return tuple(permutation.index(axis) for axis in range(len(permutation)))


def _to_front(rank: int, axis: int) -> Shape:
    """The permutation that moves an axis to position 1, ONNX's axis of channels."""
    others = [other for other in range(1, rank) if other != axis]
    return (0, axis, *others) if rank > 1 else (0,)


def channels_first(writer: Writer, value: SSAValue, layout: str) -> str:
    """An image or weights in channels-first layout."""
    rank = rank_of(value)
    return writer.name(value) if layout == "channels_first" else writer.transposed(value, _to_front(rank, rank - 1))


def channels_back(writer: Writer, name: str, rank: int, layout: str) -> str:
    """Convert a channels-first result to the given layout."""
    return name if layout == "channels_first" else writer.transposed(name, _inverse(_to_front(rank, rank - 1)))


@onnx_export(convolution.ConvOp)
def conv(writer: Writer, op: convolution.ConvOp) -> str:
    """A channels-first convolution; a bias for accumulators of quantized values is added separately."""
    layout = text(op.layout)
    image, weights = (channels_first(writer, value, layout) for value in (op.input, op.filter))
    is_plain = op.bias is None or element_of(op.bias) == element_of(op.input)
    result = product(
        writer,
        op,
        "Conv",
        image,
        weights,
        *([op.bias] if is_plain else []),
        kernel_shape=kernel_of(op.filter, layout),
        **_steps(op),
        group=integer(op.group),
    )
    if op.bias is not None and not is_plain:
        by_channel = writer.reshaped(op.bias, (-1, *[1] * (rank_of(op.result) - 2)))
        result = writer.emit("Add", result, by_channel)
    return channels_back(writer, result, rank_of(op.result), layout)


def kernel_of(weights: SSAValue, layout: str) -> Shape:
    """The spatial sizes of weights."""
    shape = shape_of(weights)
    return shape[2:] if layout == "channels_first" else shape[1:-1]


@onnx_export(convolution.ConvTransposeOp)
def conv_transpose(writer: Writer, op: convolution.ConvTransposeOp) -> str:
    """A channels-first transposed convolution."""
    layout = text(op.layout)
    image, weights = (channels_first(writer, value, layout) for value in (op.input, op.filter))
    result = product(
        writer,
        op,
        "ConvTranspose",
        image,
        weights,
        op.bias,
        kernel_shape=kernel_of(op.filter, layout),
        **_steps(op),
        output_padding=ints(op.output_padding) or None,
        group=integer(op.group),
    )
    return channels_back(writer, result, rank_of(op.result), layout)


# Any: pooling operators and convolutions have no common base class with these properties.
def _steps(op: Any) -> dict[str, Shape | None]:
    """Strides, pads and dilations as ONNX's attributes; `None` for defaults."""
    return {name: ints(getattr(op, name)) or None for name in ("strides", "pads", "dilations")}


def pool_attributes(op: Any) -> dict[str, Any]:
    """The window of a pooling operator, as ONNX's attributes."""
    return {"kernel_shape": ints(op.kernel_shape), **_steps(op), "ceil_mode": int(flag(op.ceil_mode))}


def _pool(kind: str, more: Callable[[Any], dict[str, Any]]) -> Callable[[Writer, Any], str]:
    def export(writer: Writer, op: Any) -> str:
        layout = text(op.layout)
        result = writer.emit(
            kind,
            channels_first(writer, op.input, layout),
            **pool_attributes(op),
            **more(op),
        )
        return channels_back(writer, result, rank_of(op.result), layout)

    return export


onnx_export(pooling.MaxPoolOp)(_pool("MaxPool", lambda op: {}))
onnx_export(pooling.AvgPoolOp)(_pool("AveragePool", lambda op: {"count_include_pad": int(flag(op.count_include_pad))}))
onnx_export(pooling.LpPoolOp)(_pool("LpPool", lambda op: {"p": integer(op.p)}))


@onnx_export(pooling.SumPoolOp)
def sum_pool(writer: Writer, op: pooling.SumPoolOp) -> str:
    """A depthwise convolution of 8-bit quantized values with ones, whose padding adds nothing either."""
    layout, rank = text(op.layout), rank_of(op.result)
    attributes = pool_attributes(op)
    is_wide = numpy_dtype(storage_of(element_of(op.input))).itemsize > 1
    if is_wide or attributes.pop("ceil_mode"):
        what = "of 16-bit quantized values" if is_wide else "that reach beyond the image"
        raise writer.unsupported(f"sums of windows {what} cannot be exported")
    channels = shape_of(op.result)[1 if layout == "channels_first" else -1]
    ones = writer.constant(np.ones((channels, 1, *attributes["kernel_shape"])), np.uint8)
    image, zero_point = channels_first(writer, op.input, layout), zero_point_name(writer, op.input)
    result = writer.emit("ConvInteger", image, ones, zero_point, group=channels, **attributes)
    return channels_back(writer, result, rank, layout)


# ---- normalization


def _over_channels(
    writer: Writer, op: HighOp, kind: str, axis: int, *operands: SSAValue | None, **attributes: Any
) -> str:
    """An operator on channels along an axis, which is moved to ONNX's position."""
    rank = rank_of(op.operands[0])
    position = normalize_axis(axis, rank)
    if position == 0:
        raise writer.unsupported("channels along the first axis cannot be exported")
    order = _to_front(rank, position)
    result = writer.emit(kind, writer.transposed(op.operands[0], order), *operands, **attributes)
    return writer.transposed(result, _inverse(order))


@onnx_export(normalization.BatchNormalizationOp)
def batch_normalization(writer: Writer, op: normalization.BatchNormalizationOp) -> str:
    """Batch normalization with given mean and variance."""
    operands = (op.scale, op.offset, op.mean, op.variance)
    epsilon = float(number(op.epsilon))
    return _over_channels(writer, op, "BatchNormalization", integer(op.axis), *operands, epsilon=epsilon)


@onnx_export(normalization.InstanceNormalizationOp)
def instance_normalization(writer: Writer, op: normalization.InstanceNormalizationOp) -> str:
    """Normalization of each channel of each image."""
    epsilon = float(number(op.epsilon))
    axis = integer(op.axis)
    return _over_channels(writer, op, "InstanceNormalization", axis, op.scale, op.offset, epsilon=epsilon)


@onnx_export(normalization.GroupNormalizationOp)
def group_normalization(writer: Writer, op: normalization.GroupNormalizationOp) -> str:
    """Normalization of groups of channels of each image."""
    attributes = ATTRIBUTE_MAPS["GroupNormalization"].export_from(op)
    return _over_channels(writer, op, "GroupNormalization", integer(op.axis), op.scale, op.offset, **attributes)


@onnx_export(normalization.LrnOp)
def lrn(writer: Writer, op: normalization.LrnOp) -> str:
    """Local response normalization over neighboring channels."""
    return _over_channels(writer, op, "LRN", integer(op.axis), **ATTRIBUTE_MAPS["LRN"].export_from(op))


@onnx_export(normalization.LayerNormalizationOp)
def layer_normalization(writer: Writer, op: normalization.LayerNormalizationOp) -> str:
    """Normalization over all axes from one on."""
    attributes = ATTRIBUTE_MAPS["LayerNormalization"].export_from(op)
    return writer.emit("LayerNormalization", op.input, op.scale, op.bias, **attributes)


@onnx_export(normalization.RmsNormalizationOp)
def rms_normalization(writer: Writer, op: normalization.RmsNormalizationOp) -> str:
    """x / sqrt(mean(x²) + epsilon) · scale, because the opset has no operator for it."""
    rank = rank_of(op.input)
    axes = range(normalize_axis(integer(op.axis), rank), rank)
    square = writer.emit("ReduceMean", writer.emit("Mul", op.input, op.input), writer.constant(list(axes)))
    root = writer.emit("Sqrt", writer.emit("Add", square, writer.like(number(op.epsilon), op.input)))
    return writer.emit("Mul", writer.emit("Div", op.input, root), op.scale)


@onnx_export(ResizeOp)
def resize(writer: Writer, op: ResizeOp) -> str:
    """A Resize by sizes, or by scales if the operator has any; channels that keep their size are moved to axis 1."""
    shape, ratios = shape_of(op.input), op.ratios()
    by_sizes = all(is_by_size or ratio == 1.0 for is_by_size, ratio in zip(op.by_sizes(), ratios, strict=True))
    by_scales = [int(np.floor(np.float32(size) * np.float32(scale))) for size, scale in zip(shape, ratios, strict=True)]
    if not by_sizes and by_scales != list(ints(op.shape)):
        raise writer.unsupported("scales that do not match the shape cannot be exported")
    rank = len(shape)
    is_last = rank > 2 and shape[-1] == ints(op.shape)[-1] and shape[1] != ints(op.shape)[1]
    order = _to_front(rank, rank - 1) if is_last and op.roi is None else tuple(range(rank))
    result = writer.emit(
        "Resize",
        writer.transposed(op.input, order),
        writer.constant(floats(op.roi), np.float32) if op.roi is not None else "",
        writer.constant([ratios[axis] for axis in order], np.float32) if not by_sizes else "",
        writer.constant([ints(op.shape)[axis] for axis in order]) if by_sizes else "",
        **ATTRIBUTE_MAPS["Resize"].export_from(op),
    )
    return writer.transposed(result, _inverse(order))

"""Export of Fourier transforms, sampling operators, and pooling with indices."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.dialects.glow_high import convolution, fourier, pooling, sampling
from glow_mlir.dialects.properties import flag, integer, ints, text
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.frontends.onnx.export.spatial import channels_back, channels_first, kernel_of, pool_attributes
from glow_mlir.frontends.onnx.export.writer import Writer
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.ir.registry import onnx_export

LAST = "channels_last"
"""The only layout of these operators."""


@onnx_export(fourier.DftOp)
def dft(writer: Writer, op: fourier.DftOp) -> str:
    """A discrete Fourier transform along an axis."""
    if op.gives_real():
        raise writer.unsupported("the opset has no inverse transform of half the spectrum")
    length, axis = writer.constant(integer(op.length)), writer.constant(op.along())
    truths = {"inverse": int(flag(op.inverse)), "onesided": int(flag(op.onesided))}
    return writer.emit("DFT", op.input, length, axis, **truths)


@onnx_export(sampling.GridSampleOp)
def grid_sample(writer: Writer, op: sampling.GridSampleOp) -> str:
    """Sample an image at the positions of a grid."""
    image = channels_first(writer, op.input, LAST)
    attributes = ATTRIBUTE_MAPS["GridSample"].export_from(op)
    return channels_back(writer, writer.emit("GridSample", image, op.grid, **attributes), rank_of(op.result), LAST)


@onnx_export(sampling.RoiAlignOp)
def roi_align(writer: Writer, op: sampling.RoiAlignOp) -> str:
    """Pool regions of an image into grids of cells."""
    rows, columns = ints(op.output_shape)
    result = writer.emit(
        "RoiAlign",
        channels_first(writer, op.input, LAST),
        op.rois,
        op.batch_indices,
        output_height=rows,
        output_width=columns,
        coordinate_transformation_mode="half_pixel" if flag(op.half_pixel) else "output_half_pixel",
        **ATTRIBUTE_MAPS["RoiAlign"].export_from(op),
    )
    return channels_back(writer, result, rank_of(op.result), LAST)


@onnx_export(sampling.RoiPoolOp)
def roi_pool(writer: Writer, op: sampling.RoiPoolOp) -> str:
    """Pool regions of an image into grids of maxima."""
    image, attributes = channels_first(writer, op.input, LAST), ATTRIBUTE_MAPS["MaxRoiPool"].export_from(op)
    result = writer.emit("MaxRoiPool", image, op.rois, pooled_shape=ints(op.output_shape), **attributes)
    return channels_back(writer, result, rank_of(op.result), LAST)


@onnx_export(sampling.DeformConvOp)
def deform_conv(writer: Writer, op: sampling.DeformConvOp) -> str:
    """A convolution of elements sampled at offsets from their positions."""
    window = op.window()
    operands = [channels_first(writer, value, LAST) for value in (op.input, op.filter, op.offset)]
    result = writer.emit(
        "DeformConv",
        *operands,
        op.bias,
        "" if op.mask is None else channels_first(writer, op.mask, LAST),
        kernel_shape=kernel_of(op.filter, LAST),
        strides=window.strides,
        pads=window.pads,
        dilations=window.dilations,
        **ATTRIBUTE_MAPS["DeformConv"].export_from(op),
    )
    return channels_back(writer, result, rank_of(op.result), LAST)


@onnx_export(convolution.Col2ImOp)
def col2im(writer: Writer, op: convolution.Col2ImOp) -> str:
    """Sum overlapping windows into an image."""
    window = op.window()
    sizes = [writer.constant(ints(item)) for item in (op.image_shape, op.block_shape)]
    attributes = {"strides": window.strides, "pads": window.pads, "dilations": window.dilations}
    return writer.emit("Col2Im", op.input, *sizes, **attributes)


@onnx_export(pooling.MaxPoolWithIndicesOp)
def max_pool_with_indices(writer: Writer, op: pooling.MaxPoolWithIndicesOp) -> Sequence[str]:
    """The maxima of windows, and their positions."""
    if flag(op.by_channel):
        raise writer.unsupported("indices that each channel counts from 0 cannot be exported")
    layout = text(op.layout)
    attributes = ATTRIBUTE_MAPS["MaxPool"].export_from(op) | pool_attributes(op)
    results = writer.emit_all("MaxPool", 2, channels_first(writer, op.input, layout), **attributes)
    return [channels_back(writer, result, rank_of(op.result), layout) for result in results]

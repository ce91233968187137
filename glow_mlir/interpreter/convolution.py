"""Semantics of convolutions: accumulated in f64 and rounded once, or in wrapping integer accumulators."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.convolution import Col2ImOp, ConvOp, ConvTransposeOp
from glow_mlir.dialects.product_types import ProductSignature
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.windows import Window, is_channels_last
from glow_mlir.interpreter.linear import factors, wide
from glow_mlir.ir.registry import semantics


def windows_of(x: np.ndarray, window: Window, fill: float, outputs: tuple[int, ...]) -> np.ndarray:
    """
    All windows of channels-last `x` [N, spatial…, C] as [N, outputs…, C, kernel…].

    `fill` is the value of padding, including that added by `ceil_mode`.
    """
    rank = len(window.kernel)
    pads = [(0, 0)]
    for axis in range(rank):
        before, after = window.padding(axis)
        needed = (outputs[axis] - 1) * window.strides[axis] + window.extent(axis)
        pads.append((before, max(after, needed - before - x.shape[1 + axis])))
    padded = np.pad(x, [*pads, (0, 0)], constant_values=fill)
    extents = tuple(window.extent(axis) for axis in range(rank))
    view = sliding_window_view(padded, extents, axis=tuple(range(1, rank + 1)))
    steps = tuple(slice(None, None, stride) for stride in window.strides)
    counts = tuple(slice(0, count) for count in outputs)
    dilated = tuple(slice(None, None, dilation) for dilation in window.dilations)
    return view[(slice(None), *steps)][(slice(None), *counts)][(..., *dilated)]


def channels_last(array: np.ndarray) -> np.ndarray:
    """Transpose [N, C, spatial…] to [N, spatial…, C]."""
    return np.moveaxis(array, 1, -1)


@semantics(ConvOp)
def conv(op: ConvOp, x: np.ndarray, filter_: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Compute each output as the bias plus the products of its window with the filter."""
    last = is_channels_last(op.layout)
    signature = ProductSignature.of(op.input, op.filter, op.bias, op.to)
    image, weights = factors(signature, *(array if last else channels_last(array) for array in (x, filter_)))
    window = Window.of(weights.shape[1:-1], op.strides, op.pads, op.dilations)
    outputs = window.outputs(image.shape[1:-1])
    patches = windows_of(image, window, 0.0, outputs)
    group = integer(op.group)
    rank = len(window.kernel)
    axes = list(range(-rank - 1, 0))
    depth = image.shape[-1] // group
    per_group = weights.shape[0] // group
    parts: list[np.ndarray] = []
    for index in range(group):
        chosen = patches[(..., slice(index * depth, (index + 1) * depth), *[slice(None)] * rank)]
        kernel = np.moveaxis(weights[index * per_group : (index + 1) * per_group], -1, 1)
        parts.append(np.tensordot(chosen, kernel, (axes, list(range(1, rank + 2)))))
    result = np.concatenate(parts, axis=-1)
    if bias is not None:
        result = result + wide(bias)
    return (result if last else np.moveaxis(result, -1, 1)).astype(numpy_dtype(signature.output))


@semantics(ConvTransposeOp)
def conv_transpose(op: ConvTransposeOp, x: np.ndarray, filter_: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Add the products of each input element with the filter to a window of the output, then crop the pads."""
    last = is_channels_last(op.layout)
    signature = ProductSignature.of(op.input, op.filter, op.bias)
    image, weights = factors(signature, *(array if last else channels_last(array) for array in (x, filter_)))
    window, group, spatial = op.window(), integer(op.group), image.shape[1:-1]
    extents = static(op.extents(spatial))
    result = np.zeros((image.shape[0], *extents, weights.shape[-1] * group), image.dtype)
    inputs, kernels = np.split(image, group, axis=-1), np.split(weights, group, axis=0)
    for tap in np.ndindex(*window.kernel):
        products = [part @ kernel[(slice(None), *tap)] for part, kernel in zip(inputs, kernels, strict=True)]
        firsts = [index * dilation for index, dilation in zip(tap, window.dilations, strict=True)]
        positions = tuple(
            slice(first, first + size * stride, stride)
            for first, size, stride in zip(firsts, spatial, window.strides, strict=True)
        )
        result[(slice(None), *positions)] += np.concatenate(products, axis=-1)
    pads = (window.padding(axis) for axis in range(len(extents)))
    kept = [slice(before, extent - after) for extent, (before, after) in zip(extents, pads, strict=True)]
    result = result[(slice(None), *kept)]
    if bias is not None:
        result = result + wide(bias)
    return (result if last else np.moveaxis(result, -1, 1)).astype(numpy_dtype(signature.output))


@semantics(Col2ImOp)
def col2im(op: Col2ImOp, x: np.ndarray) -> np.ndarray:
    """Add each element of the windows at its position in the padded image."""
    window, windows, image = op.window(), op.windows(), ints(op.image_shape)
    padding = [window.padding(axis) for axis in range(len(image))]
    channels = x.shape[1] // math.prod(window.kernel)
    columns = wide(x).reshape(len(x), channels, *window.kernel, *windows)
    padded = [size + sum(pads) for size, pads in zip(image, padding, strict=True)]
    total = np.zeros((len(x), channels, *padded), columns.dtype)
    for element in np.ndindex(*window.kernel):
        positions = [
            slice(start * dilation, start * dilation + (count - 1) * stride + 1, stride)
            for start, dilation, count, stride in zip(element, window.dilations, windows, window.strides, strict=True)
        ]
        total[(slice(None), slice(None), *positions)] += columns[(slice(None), slice(None), *element)]
    inner = [slice(before, before + size) for (before, _), size in zip(padding, image, strict=True)]
    return total[(slice(None), slice(None), *inner)].astype(x.dtype)

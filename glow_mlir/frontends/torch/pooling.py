"""PyTorch's pooling operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import PadOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp
from glow_mlir.dialects.glow_high.indexing import GatherOp, ScatterElementsOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolWithIndicesOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.torch.backward import gradient_through
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, wide_type
from glow_mlir.frontends.torch.windows import Windows, batched, fixed, spatial_axes
from glow_mlir.support.symbols import Sizes, product_of


def pooled(node: TorchNode, operator: type[HighOp], x: SSAValue, windows: Windows, **properties: Any) -> list[SSAValue]:
    """Apply a pooling operator; [C, spatial…] is a batch of one."""
    count = len(windows.kernel)
    results = node.emit_all(
        operator,
        to_channels_last(node, batched(node, x, count)),
        kernel_shape=windows.kernel,
        strides=windows.strides,
        dilations=windows.dilations,
        ceil_mode=windows.ceil_mode,
        **{"pads": windows.pads, **properties},
    )
    found = [to_channels_first(node, result) for result in results]
    return [node.reshaped(item, sizes_of(item)[1:]) if rank_of(x) == count + 1 else item for item in found]


# ---- maxima ----------------------------------------------------------------------------------------------------


@torch_operator("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool_with_indices(
    node: TorchNode,
    x: SSAValue,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> list[SSAValue]:
    """The maximum of each window, and its position within its channel."""
    windows = Windows.of(spatial_axes(node), kernel, stride, padding, dilation, ceil_mode)
    if 0 in node.sizes:
        return [node.splat(0, *node.result(number)) for number in range(2)]
    return pooled(node, MaxPoolWithIndicesOp, x, windows, by_channel=True)


@torch_operator(
    "max_pool2d_with_indices_backward.default",
    "max_pool3d_with_indices_backward.default",
    "adaptive_max_pool2d_backward.default",
    "adaptive_max_pool3d_backward.default",
)
def max_pool_backward(node: TorchNode, gradient: SSAValue, x: SSAValue, *arguments: Any) -> SSAValue:
    """Add the gradient of each window to the element that was its maximum; indices are the last argument."""
    return scattered_into_planes(node, gradient, arguments[-1], spatial_axes(node))


def scattered_into_planes(
    node: TorchNode, values: SSAValue, indices: SSAValue, spatial: int, reduction: str = "add"
) -> SSAValue:
    """Scatter values into zeros of the traced sizes, at indices into the spatial axes of their channel."""
    zeros = node.splat(0, node.element, _as_rows(node.sizes, spatial))
    rows = [node.reshaped(value, _as_rows(sizes_of(value), spatial)) for value in (indices, values)]
    axis = rank_of(zeros) - 1
    return node.reshaped(node.emit(ScatterElementsOp, zeros, *rows, axis=axis, reduction=reduction))


def _as_rows(sizes: Sizes, spatial: int) -> Sizes:
    """The sizes of an image with its spatial axes merged."""
    return (*sizes[:-spatial], product_of(sizes[-spatial:]))


# ---- means -----------------------------------------------------------------------------------------------------


@torch_operator("avg_pool2d.default", "avg_pool1d.default", "avg_pool3d.default")
def avg_pool(
    node: TorchNode,
    x: SSAValue,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> SSAValue:
    """The mean of each window, or its sum divided by `divisor`; integers are rounded toward 0."""
    windows = Windows.of(spatial_axes(node), kernel, stride, padding, ceil_mode=ceil_mode)
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    if not is_float(node.element):
        return _integer_means(node, x, windows, count_include_pad, divisor)
    return _means(node, x, windows, node.sizes, count_include_pad, divisor)


def _means(
    node: TorchNode, x: SSAValue, windows: Windows, result: Sizes, count_include_pad: bool, divisor: int | None
) -> SSAValue:
    """Means of floats, or sums divided by `divisor`."""
    if divisor is None:
        return pooled(node, AvgPoolOp, x, windows, count_include_pad=count_include_pad)[0]
    return _sums(node, x, windows, result, 1 / divisor)


@torch_operator("avg_pool2d_backward.default", "avg_pool3d_backward.default")
def avg_pool_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> SSAValue:
    """Distribute the gradient of each window over the elements it counts."""
    windows = Windows.of(spatial_axes(node), kernel, stride, padding, ceil_mode=ceil_mode)
    if 0 in node.sizes or 0 in sizes_of(gradient):
        return node.splat(0, node.element, node.sizes)
    sizes = sizes_of(gradient)
    return gradient_through(
        node, lambda value: _means(node, value, windows, sizes, count_include_pad, divisor), gradient, x
    )


def _sums(node: TorchNode, x: SSAValue, windows: Windows, result: Sizes, factor: float) -> SSAValue:
    """The sum of each window times a factor, as a mean over windows of the same size, including padding."""
    whole = Windows(windows.kernel, windows.strides, windows.padding, windows.dilations)
    pads = (*windows.padding, *_trailing(node, x, windows, result))
    (mean,) = pooled(node, AvgPoolOp, x, whole, pads=pads, count_include_pad=True)
    weight = math.prod(windows.kernel) * factor
    return mean if weight == 1 else node.emit(MulOp, mean, node.scalar(weight, element_of(mean)))


def _trailing(node: TorchNode, x: SSAValue, windows: Windows, result: Sizes) -> list[int]:
    """The trailing paddings that complete each window of the result."""
    count = len(windows.kernel)
    found: list[int] = []
    for axis, (size, outputs) in enumerate(zip(sizes_of(x)[-count:], result[-count:], strict=True)):
        if not isinstance(size, int) or not isinstance(outputs, int):
            if windows.ceil_mode:
                raise node.unsupported("windows beyond the border of an image whose size is known at run time only")
            found.append(windows.padding[axis])
            continue
        reach = (outputs - 1) * windows.strides[axis] + windows.kernel[axis]
        found.append(max(windows.padding[axis], reach - size - windows.padding[axis]))
    return found


def _integer_means(
    node: TorchNode, x: SSAValue, windows: Windows, count_include_pad: bool, divisor: int | None
) -> SSAValue:
    """The sum of each window, tap by tap, divided by the number of elements it counts."""
    count = len(windows.kernel)
    inputs, outputs = fixed(node, sizes_of(x)[-count:]), fixed(node, node.sizes[-count:])
    leading = (0,) * (rank_of(x) - count)
    padded = node.emit(PadOp, x, pads=(*leading, *windows.padding, *leading, *_trailing(node, x, windows, node.sizes)))
    total: SSAValue | None = None
    for tap in product(*map(range, windows.kernel)):
        ends = [first + (size - 1) * step + 1 for first, size, step in zip(tap, outputs, windows.strides, strict=True)]
        part = node.emit(
            SliceOp,
            padded,
            starts=(*leading, *tap),
            ends=(*sizes_of(x)[:-count], *ends),
            steps=(*(1 for _ in leading), *windows.strides),
        )
        total = part if total is None else node.emit(AddOp, total, part)
    assert total is not None
    counts = node.constant(_counts(inputs, outputs, windows, count_include_pad, divisor), "counts")
    return node.emit(DivOp, total, node.cast(counts, node.element))


def _counts(
    inputs: Sequence[int], outputs: Sequence[int], windows: Windows, with_pads: bool, divisor: int | None
) -> np.ndarray:
    """The divisor of each window."""
    found = np.ones((), np.int64)
    for axis, (size, count) in enumerate(zip(inputs, outputs, strict=True)):
        padding = windows.padding[axis]
        first, last = (-padding, size + padding) if with_pads else (0, size)
        starts = np.arange(count) * windows.strides[axis] - padding
        lengths = np.minimum(starts + windows.kernel[axis], last) - np.maximum(starts, first)
        found = np.multiply.outer(found, lengths)
    return np.full(found.shape, divisor, np.int64) if divisor is not None else found


# ---- adaptive windows ------------------------------------------------------------------------------------------


def _windows_along(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The starts and ends of `count` windows along an axis."""
    numbers = np.arange(count)
    return numbers * size // count, -(-(numbers + 1) * size // count)


@torch_operator("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_avg_pool1d.default")
def adaptive_avg_pool(node: TorchNode, x: SSAValue, shape: Sequence[int]) -> SSAValue:
    """The means of a given number of windows."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    return adaptive_means(node, x, tuple(shape))


@torch_operator("_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(node: TorchNode, gradient: SSAValue, x: SSAValue) -> SSAValue:
    """Distribute the gradient of each window over its elements."""
    if 0 in node.sizes or 0 in sizes_of(gradient):
        return node.splat(0, node.element, node.sizes)
    shape = sizes_of(gradient)[-spatial_axes(node) :]
    return gradient_through(node, lambda value: adaptive_means(node, value, shape), gradient, x)


def adaptive_means(node: TorchNode, x: SSAValue, wanted_sizes: Sizes) -> SSAValue:
    """The means of windows distributed evenly along the last axes."""
    count = len(wanted_sizes)
    if all(size == 1 for size in wanted_sizes):
        return node.emit(ReduceMeanOp, x, axes=tuple(range(rank_of(x) - count, rank_of(x))))
    sizes, shape = fixed(node, sizes_of(x)[-count:]), fixed(node, wanted_sizes)
    if sizes == shape:
        return x
    if all(size % wanted == 0 for size, wanted in zip(sizes, shape, strict=True)):
        kernel = [size // wanted for size, wanted in zip(sizes, shape, strict=True)]
        return pooled(node, AvgPoolOp, x, Windows.of(count, kernel))[0]
    wide = wide_type(element_of(x))
    value = node.cast(x, wide)
    for number, (size, wanted) in enumerate(zip(sizes, shape, strict=True)):
        value = _means_along(node, value, rank_of(x) - count + number, size, wanted)
    return node.cast(value, element_of(x))


def _means_along(node: TorchNode, x: SSAValue, axis: int, size: int, count: int) -> SSAValue:
    """The means of `count` windows along an axis: sums of gathered elements, with zeros after shorter windows."""
    first, last = _windows_along(size, count)
    longest = int((last - first).max())
    positions = first[:, None] + np.arange(longest)
    behind = [0] * (2 * rank_of(x))
    behind[rank_of(x) + axis] = 1
    padded = node.emit(PadOp, x, pads=behind) if (positions >= last[:, None]).any() else x
    indices = node.constant(np.where(positions < last[:, None], positions, size).astype(np.int64), "windows")
    total = node.emit(ReduceSumOp, node.emit(GatherOp, padded, indices, axis=axis), axes=(axis + 1,), keepdims=False)
    shares = (1 / (last - first)).reshape(-1, *(1,) * (rank_of(x) - 1 - axis))
    return node.emit(MulOp, total, node.cast(node.constant(shares, "shares"), element_of(x)))


@torch_operator("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(node: TorchNode, x: SSAValue, shape: Sequence[int]) -> list[SSAValue]:
    """The maxima of a given number of windows, and their positions within their channel."""
    count = len(shape)
    if 0 in node.sizes:
        return [node.splat(0, *node.result(number)) for number in range(2)]
    sizes = fixed(node, sizes_of(x)[-count:])
    if all(size % wanted == 0 for size, wanted in zip(sizes, shape, strict=True)):
        kernel = [size // wanted for size, wanted in zip(sizes, shape, strict=True)]
        return pooled(node, MaxPoolWithIndicesOp, x, Windows.of(count, kernel), by_channel=True)
    image, kernel, along = x, list[int](), list[np.ndarray]()
    for number, (size, wanted) in enumerate(zip(sizes, shape, strict=True)):
        # Shorter windows repeat their last element: the first of equal elements counts.
        first, last = _windows_along(size, wanted)
        kernel.append(int((last - first).max()))
        along.append(np.minimum(first[:, None] + np.arange(kernel[-1]), last[:, None] - 1).reshape(-1))
        image = node.emit(GatherOp, image, node.constant(along[-1], "windows"), axis=rank_of(x) - count + number)
    values, positions = pooled(node, MaxPoolWithIndicesOp, image, Windows.of(count, kernel), by_channel=True)
    numbers = np.arange(math.prod(sizes)).reshape(sizes)[np.ix_(*along)].reshape(-1)
    return [values, node.emit(GatherOp, node.constant(numbers, "places"), positions, axis=0)]


@torch_operator("max_unpool2d.default", "max_unpool3d.default")
def max_unpool(node: TorchNode, x: SSAValue, indices: SSAValue, shape: Sequence[int], *_: Any) -> SSAValue:
    """Scatter elements to their indices into the spatial axes, zero elsewhere; the last of several is kept."""
    return scattered_into_planes(node, x, indices, len(shape), "none")

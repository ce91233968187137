"""PyTorch's operators that sample images by grids, or convert between windows and columns, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import Col2ImOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, SliceOp
from glow_mlir.dialects.glow_high.sampling import GridSampleOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.torch.backward import gradients, variables
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, wide_type
from glow_mlir.frontends.torch.windows import Windows, fixed
from glow_mlir.support.symbols import Size, product_of

MODES = ("linear", "nearest", "cubic")
PADDINGS = ("zeros", "border", "reflection")
"""Interpolation modes and paddings, indexed by PyTorch's numbers."""


def _sampled(node: TorchNode, x: SSAValue, grid: SSAValue, mode: int, padding: int, align_corners: bool) -> SSAValue:
    """
    Sample an image at the positions of a grid, computed in f32 or wider.

    Cubic interpolation with border padding is not supported: ONNX clamps positions, PyTorch each neighboring element.
    """
    if (MODES[mode], PADDINGS[padding]) == ("cubic", "border"):
        raise node.unsupported("cubic interpolation with the border as padding")
    element = wide_type(element_of(x))
    result = node.emit(
        GridSampleOp,
        to_channels_last(node, node.cast(x, element)),
        node.cast(grid, element),
        mode=MODES[mode],
        padding=PADDINGS[padding],
        align_corners=align_corners,
    )
    return to_channels_first(node, result)


@torch_operator("grid_sampler_2d.default", "grid_sampler_3d.default")
def grid_sampler(
    node: TorchNode, x: SSAValue, grid: SSAValue, mode: int, padding: int, align_corners: bool
) -> SSAValue:
    """Sample an image at the positions of a grid."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    return node.cast(_sampled(node, x, grid, mode, padding, align_corners), node.element)


@torch_operator("grid_sampler_2d_backward.default", "grid_sampler_3d_backward.default")
def grid_sampler_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    grid: SSAValue,
    mode: int,
    padding: int,
    align_corners: bool,
    wanted: Sequence[bool],
) -> list[SSAValue | None]:
    """The wanted gradients of sampling with respect to image and grid."""
    if 0 in sizes_of(gradient):
        return [node.splat(0, *node.result(number)) if wanted[number] else None for number in range(2)]
    x, grid = variables(node, x, grid)
    result = _sampled(node, x, grid, mode, padding, align_corners)
    chosen = [source for source, is_wanted in zip((x, grid), wanted, strict=True) if is_wanted]
    found = iter(gradients(node, result, gradient, *chosen))
    return [next(found) if is_wanted else None for is_wanted in wanted]


# ---- columns of windows ----------------------------------------------------------------------------------------


@torch_operator("im2col.default")
def im2col(
    node: TorchNode,
    x: SSAValue,
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> SSAValue:
    """The windows of an image as columns, with a row for each channel and element of a window."""
    windows = Windows.of(2, kernel, stride, padding, dilation)
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    *batch, channels, _, _ = sizes_of(x)
    leading = [0] * (len(batch) + 1)
    padded = node.emit(PadOp, x, pads=(*leading, *windows.padding, *leading, *windows.padding))
    counts = [
        (size + 2 * pad - step * (length - 1) - 1) // apart + 1
        for size, pad, step, length, apart in zip(
            fixed(node, sizes_of(x)[-2:]),
            windows.padding,
            windows.dilations,
            windows.kernel,
            windows.strides,
            strict=True,
        )
    ]
    parts: list[SSAValue] = []
    for tap in product(*map(range, windows.kernel)):
        starts = [position * step for position, step in zip(tap, windows.dilations, strict=True)]
        ends = [
            start + (count - 1) * apart + 1 for start, count, apart in zip(starts, counts, windows.strides, strict=True)
        ]
        part = node.emit(
            SliceOp,
            padded,
            starts=(*leading, *starts),
            ends=(*batch, channels, *ends),
            steps=(*(1 for _ in leading), *windows.strides),
        )
        parts.append(node.reshaped(part, (*batch, channels, 1, product_of(counts))))
    columns = parts[0] if len(parts) == 1 else node.emit(ConcatOp, parts, axis=len(batch) + 1)
    return node.reshaped(columns)


@torch_operator("col2im.default")
def col2im(
    node: TorchNode,
    x: SSAValue,
    shape: Sequence[Size],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> SSAValue:
    """Sum overlapping windows, given as columns, into an image."""
    windows = Windows.of(2, kernel, stride, padding, dilation)
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    wide = node.cast(x, wide_type(element_of(x)))
    columns = node.reshaped(wide, (1, *sizes_of(x))) if rank_of(x) == 2 else wide
    image = node.emit(
        Col2ImOp,
        columns,
        image_shape=fixed(node, shape),
        block_shape=windows.kernel,
        strides=windows.strides,
        pads=windows.pads,
        dilations=windows.dilations,
    )
    return node.reshaped(node.cast(image, node.element))

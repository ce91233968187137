"""Torchvision's operators on regions of images."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.sampling import RoiAlignOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.torch.backward import gradient_through
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode


def _aligned(
    node: TorchNode,
    image: SSAValue,
    *,
    regions: SSAValue,
    scale: float,
    cells: tuple[int, int],
    samples: int,
    half_pixel: bool,
) -> SSAValue:
    """The means of cells of regions; a region has the index of its image and two corners."""
    count, element = sizes_of(regions)[0], node.wide
    numbers = node.reshaped(node.cast(cut(node, regions, {1: (0, 1)}), i64), (count,))
    result = node.emit(
        RoiAlignOp,
        to_channels_last(node, node.cast(image, element)),
        node.cast(cut(node, regions, {1: (1, 5)}), element),
        numbers,
        output_shape=cells,
        sampling_ratio=max(samples, 0),
        spatial_scale=scale,
        half_pixel=half_pixel,
    )
    return to_channels_first(node, result)


@torch_operator("torchvision.roi_align.default")
def roi_align(
    node: TorchNode,
    image: SSAValue,
    regions: SSAValue,
    scale: float,
    rows: int,
    columns: int,
    samples: int,
    half_pixel: bool,
) -> SSAValue:
    """Pool regions of images into grids of cells, each the mean of samples."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    cells = rows, columns
    found = _aligned(node, image, regions=regions, scale=scale, cells=cells, samples=samples, half_pixel=half_pixel)
    return node.cast(found, node.element)


@torch_operator("torchvision._roi_align_backward.default")
def roi_align_backward(
    node: TorchNode,
    cotangent: SSAValue,
    regions: SSAValue,
    scale: float,
    rows: int,
    columns: int,
    batch: int,
    channels: int,
    height: int,
    width: int,
    samples: int,
    half_pixel: bool,
) -> SSAValue:
    """The gradient with respect to the images; requires a fixed number of samples per cell."""
    if samples <= 0:
        raise node.unsupported("regions with as many samples as they have elements have no gradient")
    image = node.splat(0, node.wide, (batch, channels, height, width))
    if 0 in (*sizes_of(cotangent), *node.sizes):
        return node.cast(image, node.element)
    function = partial(
        _aligned, node, regions=regions, scale=scale, cells=(rows, columns), samples=samples, half_pixel=half_pixel
    )
    return gradient_through(node, function, cotangent, image)

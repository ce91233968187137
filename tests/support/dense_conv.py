"""The sizes of convolutions over dense buffers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from glow_mlir.codegen.kernels.products.convolution import ConvShape


def _dense_pitches(extents: Sequence[int], channels: int) -> tuple[int, ...]:
    return tuple(math.prod(extents[axis + 1 :]) * channels for axis in range(len(extents)))


def conv_shape(
    image: Sequence[int],
    kernel: Sequence[int],
    channels: int,
    filters: int,
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    batch: int = 1,
) -> ConvShape:
    """
    Return the shape for dense buffers: an input of `image` pixels, its border included, and all channels.

    `channels` and `filters` are totals over all groups.
    """
    strides = tuple(strides or [1] * len(image))
    dilations = tuple(dilations or [1] * len(image))
    outputs = tuple(
        (size - dilation * (k - 1) - 1) // stride + 1
        for size, k, stride, dilation in zip(image, kernel, strides, dilations, strict=True)
    )
    return ConvShape(
        outputs=outputs,
        kernel=tuple(kernel),
        channels=channels // groups,
        filters=filters // groups,
        input_pitches=_dense_pitches(image, channels),
        output_pitches=_dense_pitches(outputs, filters),
        strides=strides,
        dilations=dilations,
        groups=groups,
        batch=batch,
        input_image=math.prod(image) * channels,
        output_image=math.prod(outputs) * filters,
    )

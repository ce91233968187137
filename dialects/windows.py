"""Sliding windows of convolution and pooling: their properties and output shapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar, cast

from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.ir import SSAValue

from glow_mlir.dialects.properties import ints, text
from glow_mlir.dialects.shapes import Shape, require, shape_of, sizes_of
from glow_mlir.dialects.sizes import smallest
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import MAX_KEPT
from glow_mlir.support.symbols import Size, Sizes

SizeT = TypeVar("SizeT", int, Size)
"""A size that is a number, or may be known at run time only."""

CHANNELS_LAST, CHANNELS_FIRST = "channels_last", "channels_first"
LAYOUTS = (CHANNELS_LAST, CHANNELS_FIRST)
"""`channels_last` is NHWC with filters OHWI, `channels_first` NCHW with filters OIHW, for any number of axes."""


@dataclass(frozen=True)
class Window:
    """A window over the spatial axes. `pads` holds all leading paddings, then all trailing ones, as in ONNX."""

    kernel: Shape
    strides: Shape
    pads: Shape
    dilations: Shape
    ceil_mode: bool = False

    @staticmethod
    def of(
        kernel: Shape,
        strides: DenseArrayBase | None,
        pads: DenseArrayBase | None,
        dilations: DenseArrayBase | None,
        ceil_mode: bool = False,
    ) -> Window:
        """The window with those properties; absent ones are 1, and 0 for pads. Raises where ranks differ."""
        return _window(kernel, ints(strides), ints(pads), ints(dilations), ceil_mode)

    def padding(self, axis: int) -> tuple[int, int]:
        """Leading and trailing padding of a spatial axis."""
        return self.pads[axis], self.pads[axis + len(self.kernel)]

    def extent(self, axis: int) -> int:
        """How many input elements the dilated kernel spans along a spatial axis."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def output(self, axis: int, size: SizeT) -> SizeT:
        """
        The number of windows along a spatial axis, with `ceil_mode` including a last partial one; raises if there may
        be none.
        """
        before, after = self.padding(axis)
        extent, stride = self.extent(axis), self.strides[axis]
        span: Size = size + (before + after - extent)
        count = (span + (stride - 1 if self.ceil_mode else 0)) // stride + 1
        require(smallest(count) > 0, f"the window of {extent} exceeds the padded input of {_least(span + extent)}")
        # ONNX: the last window must start inside the input or its leading padding.
        if not isinstance(count, int) or not isinstance(size, int):
            if self.ceil_mode and after - extent + stride > 0:
                require(after < extent, f"{after} elements of padding hold a window of {extent}")
                count = (size + (before + stride - 1)) // stride
        elif self.ceil_mode and (count - 1) * stride >= size + before:
            count -= 1
        return cast("SizeT", count)

    def outputs(self, sizes: Sequence[SizeT]) -> tuple[SizeT, ...]:
        """How many windows fit along each spatial axis."""
        return tuple(self.output(axis, size) for axis, size in enumerate(sizes))


def _least(size: Size) -> str:
    """A size and its lower bound, for a message."""
    return str(size) if isinstance(size, int) else f"{size} where that is {smallest(size)}"


def is_channels_last(layout: StringAttr) -> bool:
    """Whether `layout` puts channels last; raises for an unknown layout."""
    word = text(layout)
    require(word in LAYOUTS, f"layout must be one of {', '.join(LAYOUTS)}, not '{word}'")
    return word == CHANNELS_LAST


def split_image(value: SSAValue | Shape, layout: StringAttr) -> tuple[int, Shape, int]:
    """Batch, spatial sizes and channels of an image tensor."""
    shape = value if isinstance(value, tuple) else shape_of(value)
    require(len(shape) >= 3, f"expected batch, channels and at least one spatial axis, got shape {shape}")
    if is_channels_last(layout):
        return shape[0], shape[1:-1], shape[-1]
    return shape[0], shape[2:], shape[1]


def split_sizes(value: SSAValue, layout: StringAttr) -> tuple[Size, Sizes, Size]:
    """Like `split_image`, where sizes may be known at run time only."""
    sizes = sizes_of(value)
    require(len(sizes) >= 3, f"expected batch, channels and at least one spatial axis, got shape {sizes}")
    if is_channels_last(layout):
        return sizes[0], sizes[1:-1], sizes[-1]
    return sizes[0], sizes[2:], sizes[1]


def channel_axis(rank: int, layout: StringAttr) -> int:
    """The axis of the channels of an image tensor of so many axes."""
    return rank - 1 if is_channels_last(layout) else 1


def join_image(batch: Size, spatial: Sizes, channels: Size, layout: StringAttr) -> Sizes:
    """The shape of an image tensor: the inverse of `split_image`."""
    return (batch, *spatial, channels) if is_channels_last(layout) else (batch, channels, *spatial)


@lru_cache(MAX_KEPT)
def _window(kernel: Shape, strides: Shape, pads: Shape, dilations: Shape, ceil_mode: bool) -> Window:
    """The window with these properties, cached."""
    rank = len(kernel)
    window = Window(kernel, strides or (1,) * rank, pads or (0,) * (2 * rank), dilations or (1,) * rank, ceil_mode)
    require(len(window.strides) == rank, f"strides must have {rank} elements, one for each spatial axis")
    require(len(window.dilations) == rank, f"dilations must have {rank} elements, one for each spatial axis")
    require(len(window.pads) == 2 * rank, f"pads must have {2 * rank} elements, two for each spatial axis")
    require(min(window.pads, default=0) >= 0, "pads must not be negative")
    require(min(window.strides, default=1) > 0, "strides must be positive")
    require(min(window.dilations, default=1) > 0, "dilations must be positive")
    return window

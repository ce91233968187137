"""Images, and the steps of windows over them."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index
from glow_mlir.codegen.kernels.expressions import taps
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.shapes import Shape, largest_shape
from glow_mlir.dialects.windows import Window
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Image:
    """Sizes and strides of an image with its axes in the order batch, spatial axes, channels, whatever its layout."""

    sizes: Extents
    strides: Shape

    @staticmethod
    def of(value: SSAValue, channels_last: bool, extents: Extents | None = None) -> Image:
        """Return the image of an operand with the given extents, by default the largest possible ones."""
        shape, strides = extents or largest_shape(value), strides_of(value)
        order = list(range(len(shape)))
        if not channels_last:
            order.append(order.pop(1))
        return Image(tuple(shape[a] for a in order), tuple(strides[a] for a in order))


@dataclass(frozen=True)
class Taps(taps.Taps):
    """The taps of a window along one axis that count."""

    output: Index
    """The position of the window among the windows of the axis."""
    origin: Index
    """The index of tap 0 in the input; it may be outside."""

    @staticmethod
    def of(b: Builder, window: Window, axis: int, output: Index, counts: tuple[Index, Index]) -> Taps:
        """
        Return the taps of window `output` along `axis` that lie in the input.

        `counts` are the numbers of windows and of input elements along the axis.
        """
        outputs, high = counts
        size, stride, (before, after) = window.kernel[axis], window.strides[axis], window.padding(axis)
        origin: Index = output * stride - before
        if isinstance(outputs, int) and isinstance(high, int):
            is_whole = (outputs - 1) * stride - before + window.extent(axis) <= high
        else:
            is_whole = after <= 0 and not window.ceil_mode
        if before <= 0 and is_whole:
            return Taps(0, size, output, origin)
        origin = b.index(origin)
        found = taps.Taps.within(b, origin, window.dilations[axis], size, 0, high)
        return Taps(found.first, found.last, output, origin)

"""Operators that move a window over an image and pad the image themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.ranges import Range
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.windows import Window


class Windowed(HighOp):
    """An operator whose first operand is an image in its `layout`, with `pads` around it."""

    @abstractmethod
    def window(self) -> Window:
        """Kernel, strides, pads and dilations, with defaults filled in."""

    @abstractmethod
    def padded(self, pads: Shape, fill: float, known: Range) -> Mapping[str, AttributeValue] | None:
        """
        The properties that change if a border of `fill` is moved from the image to `pads`; `None` if padding does not
        count as `fill`. `known` is the range of the image's elements.
        """

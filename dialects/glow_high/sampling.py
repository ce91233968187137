"""Operators that sample images between their elements, at places that operands tell."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.operand_types import FLOATS, SCALARS, TENSOR
from glow_mlir.dialects.properties import flag_prop, text, text_prop
from glow_mlir.dialects.shapes import element_of, require, shape_of, tensor

MODES = ("linear", "nearest", "cubic")
"""How elements between those of the image are made."""

PADDINGS = ("zeros", "border", "reflection")
"""What lies outside the image: zeros, the element at its border, or the image mirrored at its border."""


@irdl_op_definition
class GridSampleOp(HighOp):
    """
    The image `input` [N, spatial…, C] at the places of `grid` [N, places…, R], as [N, places…, C] (ONNX GridSample).

    A row of the grid has a place along each of the R spatial axes, the last axis first: -1 and 1 are the first and last
    element with `align_corners`, and the outer borders of these without. Places are computed in the element type of the
    grid, in f32 for floats of 16 bits. `mode` is one of `MODES`, `padding` of `PADDINGS`; the coefficient of `cubic` is
    -0.75. Integers and truth values have only `nearest`, which rounds ties to even.

    ```mlir
    %y = glow_high.grid_sample %x, %grid {mode = "cubic", padding = "border"} : tensor<1x56x56x64xf32>
    ```
    """

    name = "glow_high.grid_sample"

    input = operand_def(SCALARS.from_rank(3))
    grid = operand_def(FLOATS.from_rank(3))
    mode = text_prop("linear")
    padding = text_prop("zeros")
    align_corners = flag_prop()
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        image, grid, element = shape_of(self.input), shape_of(self.grid), element_of(self.input)
        for word, words in ((self.mode, MODES), (self.padding, PADDINGS)):
            require(text(word) in words, f"'{text(word)}' is none of {', '.join(words)}")
        axes = len(image) - 2
        require(grid[0] == image[0], f"a grid for {grid[0]} images does not fit {image[0]}")
        require(
            len(grid) == len(image) and grid[-1] == axes,
            f"an image of {axes} spatial axes needs a grid of rank "
            f"{len(image)} with {axes} numbers in a row, not one of shape {grid}",
        )
        require(0 not in image[1:-1], "an image without elements cannot be sampled")
        require(text(self.mode) == "nearest" or is_float(element), f"{element} has no {text(self.mode)} between")
        return (tensor((*grid[:-1], image[-1]), element),)

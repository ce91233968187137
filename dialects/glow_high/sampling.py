"""Operators that sample images between their elements, at points given by operands."""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.operand_types import FLOATS, INDICES, SCALARS, TENSOR
from glow_mlir.dialects.properties import (
    flag_prop,
    float_prop,
    int_prop,
    integer,
    ints,
    ints_prop,
    number,
    optional_ints_prop,
    text,
    text_prop,
)
from glow_mlir.dialects.shapes import Shape, element_of, require, require_equal, shape_of, sizes_of, tensor
from glow_mlir.dialects.sizes import RunTimeSizeError, smallest, static
from glow_mlir.dialects.windows import Window
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition

MODES = ("linear", "nearest", "cubic")
"""The interpolation between elements of the image."""

PADDINGS = ("zeros", "border", "reflection")
"""What lies outside the image: zeros, the element at its border, or the image mirrored at its border."""


def require_elements(image: Sizes) -> None:
    """Check that an image has elements for all values of symbols; raises `VerifyException` otherwise."""
    require(0 not in image, "an image without elements cannot be sampled")
    for size in image:
        if smallest(size) < 1:
            raise RunTimeSizeError(size)


@op_definition
class GridSampleOp(HighOp):
    """
    The image `input` [N, spatial…, C] at the points of `grid` [N, points…, R], as [N, points…, C] (ONNX GridSample).

    A row of the grid has a coordinate for each of the R spatial axes, the last axis first. With `align_corners`, -1 and
    1 are the centers of the first and last element; otherwise they are the outer borders of these. Coordinates are
    computed in the element type of the grid, or in f32 for floats of 16 bits. `mode` is one of `MODES`, `padding` one
    of `PADDINGS`; the coefficient of `cubic` is -0.75. Integers and truth values only have `nearest`, which rounds ties
    to even.

    ```mlir
    %y = glow_high.grid_sample %x, %grid {mode = "cubic", padding = "border"} : tensor<1x56x56x64xf32>
    ```
    """

    name = "glow_high.grid_sample"
    NOTATION: ClassVar[str] = "input[n, *, c], grid[n, ..., *r] -> result[n; ..., c]"

    input = operand_def(SCALARS.from_rank(3))
    grid = operand_def(FLOATS.from_rank(3))
    mode = text_prop("linear")
    padding = text_prop("zeros")
    align_corners = flag_prop()
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        image, grid, element = sizes_of(self.input), sizes_of(self.grid), element_of(self.input)
        for word, words in ((self.mode, MODES), (self.padding, PADDINGS)):
            require(text(word) in words, f"'{text(word)}' is none of {', '.join(words)}")
        axes = len(image) - 2
        require_equal(grid[0], image[0], f"a grid for {grid[0]} images does not fit {image[0]}")
        require(
            len(grid) == len(image) and grid[-1] == axes,
            f"an image of {axes} spatial axes needs a grid of rank "
            f"{len(image)} with {axes} numbers in a row, not one of shape {grid}",
        )
        require_elements(image[1:-1])
        require(text(self.mode) == "nearest" or is_float(element), f"{element} has no {text(self.mode)} between")
        return (tensor((*grid[:-1], image[-1]), element),)


MAX_SAMPLES = 1024
"""The maximum number of samples of a cell along an axis: a call cannot be interrupted within a cell."""

POOLINGS = ("avg", "max")
"""How the samples in a cell of a region are combined: by their mean, or by the largest of their weighted elements."""


@op_definition
class RoiAlignOp(HighOp):
    """
    Regions of the image `input` [N, H, W, C], each as a grid of cells: [R, rows, columns, C] (ONNX RoiAlign).

    `rois` [R, 4] has x and y of two corners, `batch_indices` [R] the image, of each region. `output_shape` is rows and
    columns. A cell is the mean, or with `mode = "max"` the largest weighted element, of `sampling_ratio` samples along
    each axis, at most 1024; 0 means one sample for each element. With `half_pixel`, corners are moved half an element
    left and up, and regions may be smaller than an element. Coordinates are computed in the element type, or in f32 for
    16 bits.

    ```mlir
    %y = glow_high.roi_align %x, %rois, %images {output_shape = [7, 7], spatial_scale = 0.25} : tensor<100x7x7x256xf32>
    ```
    """

    name = "glow_high.roi_align"
    NOTATION: ClassVar[str] = "input[*, c], rois[r, *], batch_indices[r] -> result[r, *, c]"
    FAILURE: ClassVar[str] = "the number of an image is out of range"

    input = operand_def(FLOATS.of_rank(4))
    rois = operand_def(FLOATS.of_rank(2))
    batch_indices = operand_def(INDICES.of_rank(1))
    output_shape = ints_prop()
    sampling_ratio = int_prop(0)
    spatial_scale = float_prop(1.0)
    half_pixel = flag_prop()
    mode = text_prop("avg")
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        image, rois, element = sizes_of(self.input), sizes_of(self.rois), element_of(self.input)
        cells = ints(self.output_shape)
        require(text(self.mode) in POOLINGS, f"'{text(self.mode)}' is none of {', '.join(POOLINGS)}")
        require(rois[1] == 4, f"a region has two corners, 4 numbers, not {rois[1]}")
        require(element_of(self.rois) == element, f"regions are {element_of(self.rois)}, the image is {element}")
        require_equal(sizes_of(self.batch_indices), rois[:1], f"{rois[0]} regions need as many numbers of images")
        require(len(cells) == 2 and min(cells) > 0, f"output_shape is rows and columns, not {cells}")
        require(0 <= integer(self.sampling_ratio) <= MAX_SAMPLES, f"sampling_ratio is from 0 to {MAX_SAMPLES}")
        require(number(self.spatial_scale) > 0, "spatial_scale must be positive")
        require_elements(image[:3])
        return (tensor((rois[0], *cells, image[3]), element),)


@op_definition
class RoiPoolOp(HighOp):
    """
    Regions of the image `input` [N, H, W, C], each as a grid of cells: [R, rows, columns, C] (ONNX MaxRoiPool).

    `rois` [R, 5] has the image, and x and y of two corners, of each region. `output_shape` is rows and columns. Corners
    are rounded to elements, ties away from 0, and belong to the region, which has at least one element along each axis.
    A cell is the largest of its elements, some of which neighbouring cells may share, and 0 if none is in the image.
    Coordinates are computed in the element type, or in f32 for 16 bits.

    ```mlir
    %y = glow_high.roi_pool %x, %rois {output_shape = [7, 7], spatial_scale = 0.0625} : tensor<100x7x7x256xf32>
    ```
    """

    name = "glow_high.roi_pool"
    NOTATION: ClassVar[str] = "input[*, c], rois[r, *] -> result[r, *, c]"
    FAILURE: ClassVar[str] = "the number of an image is out of range"

    input = operand_def(FLOATS.of_rank(4))
    rois = operand_def(FLOATS.of_rank(2))
    output_shape = ints_prop()
    spatial_scale = float_prop(1.0)
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        image, rois, element = sizes_of(self.input), sizes_of(self.rois), element_of(self.input)
        cells = ints(self.output_shape)
        require(rois[1] == 5, f"a region has an image and two corners, 5 numbers, not {rois[1]}")
        require(element_of(self.rois) == element, f"regions are {element_of(self.rois)}, the image is {element}")
        require(len(cells) == 2 and min(cells) > 0, f"output_shape is rows and columns, not {cells}")
        require(number(self.spatial_scale) > 0, "spatial_scale must be positive")
        require_elements(image[:3])
        return (tensor((rois[0], *cells, image[3]), element),)


class Deformable(HighOp):
    """An operator that samples the windows of a convolution; each element of a window has its own offset."""

    input = operand_def(FLOATS.from_rank(3))
    offset = operand_def(FLOATS.from_rank(3))
    mask = opt_operand_def(FLOATS.from_rank(3))
    strides = optional_ints_prop()
    pads = optional_ints_prop()
    dilations = optional_ints_prop()
    offset_group = int_prop(1)
    result = result_def(TENSOR)

    def check_offsets(self, window: Window) -> Shape:
        """The sizes of the result along the spatial axes; raises `VerifyException` where offsets do not fit them."""
        image, groups = sizes_of(self.input), integer(self.offset_group)
        require(len(window.kernel) == len(image) - 2, f"a window of {len(window.kernel)} axes does not fit the input")
        require_elements(image[1:-1])
        (channels,) = static(image[-1:])
        require(groups > 0 and channels % groups == 0, f"{channels} channels have no {groups} groups of offsets")
        outputs = window.outputs(static(image[1:-1]))
        for operand, numbers in ((self.offset, len(window.kernel)), (self.mask, 1)):
            expected = (image[0], *outputs, groups * self.elements(window) * numbers)
            fits = operand is None or sizes_of(operand) == expected
            require(fits, f"offsets and masks must have one of each for every element, as a shape of {expected}")
        return outputs

    @staticmethod
    def elements(window: Window) -> int:
        """How many elements a window has."""
        return math.prod(window.kernel)


@op_definition
class DeformConvOp(Deformable):
    """
    A convolution whose window elements are sampled at offsets from their regular positions (ONNX DeformConv).

    `input` is [N, spatial…, C], `filter` [O, kernel…, C / group], `bias` [O]. `offset` is [N, outputs…, offset_group *
    kernel * R], R numbers for each element of the window, in elements; `mask` [N, outputs…, offset_group * kernel] has
    factors. Channels are split into `offset_group` groups with offsets of their own. What lies outside is zero.
    """

    name = "glow_high.deform_conv"
    irdl_options = SEGMENTS

    input = operand_def(FLOATS.from_rank(3))
    filter = operand_def(FLOATS.from_rank(3))
    offset = operand_def(FLOATS.from_rank(3))
    bias = opt_operand_def(FLOATS.of_rank(1))
    mask = opt_operand_def(FLOATS.from_rank(3))
    group = int_prop(1)

    def window(self) -> Window:
        """Kernel, strides, pads and dilations."""
        return Window.of(shape_of(self.filter)[1:-1], self.strides, self.pads, self.dilations)

    def access_map(self) -> AccessMap:
        output = "o" if integer(self.group) == 1 else "*o"
        return self.accessed(
            f"input[n, *], filter[{output}, *], offset[n, *], mask[n, *], bias[{output}] -> result[n; *, {output}]"
        )

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        image, filter_, group = sizes_of(self.input), shape_of(self.filter), integer(self.group)
        outputs = self.check_offsets(self.window())
        require(
            group > 0 and filter_[-1] * group == image[-1],
            f"{group} groups of {filter_[-1]} channels do not fit an input of {image[-1]}",
        )
        require(filter_[0] % group == 0, f"{filter_[0]} filters have no {group} groups")
        require(self.bias is None or shape_of(self.bias) == filter_[:1], f"the bias must have {filter_[0]} elements")
        return (tensor((image[0], *outputs, filter_[0]), element_of(self.input)),)


@op_definition
class DeformColumnsOp(Deformable):
    """
    The elements that the windows of a `deform_conv` sample, as the rows of a matrix: [N, outputs…, kernel, C].

    `kernel_shape` is the shape of the window; everything else is as in `deform_conv`. Elements are already multiplied
    by the mask.
    """

    name = "glow_high.deform_columns"
    NOTATION: ClassVar[str] = "input[n, *], offset[n, *], mask[n, *] -> result[n, *]"

    kernel_shape = ints_prop()

    def window(self) -> Window:
        """Kernel, strides, pads and dilations."""
        return Window.of(ints(self.kernel_shape), self.strides, self.pads, self.dilations)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        image, window = sizes_of(self.input), self.window()
        outputs = self.check_offsets(window)
        return (tensor((image[0], *outputs, self.elements(window), image[-1]), element_of(self.input)),)

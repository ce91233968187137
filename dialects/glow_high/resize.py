"""Resampling along axes: one operator with the coordinate rules of ONNX."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.glow_high.samples import Samples, resized
from glow_mlir.dialects.glow_high.transposition import Untransposed, changed, moved, split_pairs
from glow_mlir.dialects.operand_types import SCALARS, TENSOR
from glow_mlir.dialects.properties import (
    flag,
    flag_prop,
    float_prop,
    floats,
    ints,
    ints_prop,
    optional_floats_prop,
    text,
    text_prop,
)
from glow_mlir.dialects.shapes import Shape, element_of, require, shape_of, tensor

MODES = ("nearest", "linear", "cubic")
"""How elements between those of the input are made."""

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)
"""Which place of the input a place of the result stands for."""

ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""Which element is the nearest one of a place between two."""


@irdl_op_definition
class ResizeOp(DataMovement):
    """
    The input resampled to `shape` (ONNX Resize and Upsample), one axis after the other.

    `scales`, by default the ratio of the sizes, place the elements of the result by the rule `coordinates`; `roi`, all
    starts and then all ends as fractions of the axes, counts for `tf_crop_and_resize` only, where places outside the
    input have the value `extrapolation`. `rounding` is for mode `nearest`, `cubic_coefficient` for `cubic`. With
    `antialias` the kernel widens where an axis shrinks; with `exclude_outside` elements beyond the border do not count,
    else the last one stands for them.

    ```mlir
    %y = glow_high.resize %x {shape = [1, 64, 56, 56], mode = "linear"} : tensor<1x64x56x56xf32>
    ```
    """

    name = "glow_high.resize"

    input = operand_def(SCALARS)
    shape = ints_prop()
    scales = optional_floats_prop()
    mode = text_prop("nearest")
    coordinates = text_prop("half_pixel")
    rounding = text_prop("round_prefer_floor")
    cubic_coefficient = float_prop(-0.75)
    exclude_outside = flag_prop()
    antialias = flag_prop()
    extrapolation = float_prop(0.0)
    roi = optional_floats_prop()
    result = result_def(TENSOR)

    def ratios(self) -> tuple[float, ...]:
        """Elements of the result an element of the input, along each axis."""
        if self.scales is not None:
            return floats(self.scales)
        return tuple(after / before for before, after in zip(shape_of(self.input), ints(self.shape), strict=True))

    def region(self, axis: int) -> tuple[float, float]:
        """Where the region of interest starts and ends along an axis."""
        roi = floats(self.roi)
        return (roi[axis], roi[axis + len(roi) // 2]) if roi else (0.0, 1.0)

    def is_identity(self) -> bool:
        same = shape_of(self.input) == ints(self.shape) and all(ratio == 1.0 for ratio in self.ratios())
        return same and text(self.coordinates) != "tf_crop_and_resize"

    def moves_only(self) -> bool:
        return text(self.mode) == "nearest" and text(self.coordinates) != "tf_crop_and_resize"

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, given, element = ints(self.shape), shape_of(self.input), element_of(self.input)
        for word, words in ((self.mode, MODES), (self.coordinates, COORDINATES), (self.rounding, ROUNDINGS)):
            require(text(word) in words, f"'{text(word)}' is none of {', '.join(words)}")
        require(len(shape) == len(given), f"shape must have {len(given)} elements, one for each axis")
        require(0 not in given, "an input without elements cannot be resized")
        require(len(self.ratios()) == len(given), f"scales must have {len(given)} elements, one for each axis")
        require(min(self.ratios(), default=1.0) > 0 or 0 in shape, "scales must be positive")
        require(len(floats(self.roi)) in (0, 2 * len(given)), f"roi must have {2 * len(given)} elements")
        nearest = text(self.mode) == "nearest"
        require(nearest or not is_bool(element), f"truth values have no {text(self.mode)} between")
        require(not (nearest and flag(self.antialias)), "antialias needs mode linear or cubic")
        return (tensor(shape, element),)

    def untransposed(self, permutation: Shape) -> Untransposed | None:
        resized = [permutation[axis] for axis, ratio in enumerate(self.ratios()) if ratio != 1.0]
        if text(self.mode) != "nearest" and resized != sorted(resized):
            return None  # One axis comes after the other, and each rounds.
        lists: dict[str, AttributeValue] = {"shape": moved(ints(self.shape), permutation)}
        if self.scales is not None:
            lists["scales"] = moved(floats(self.scales), permutation)
        if self.roi is not None:
            lists["roi"] = split_pairs(floats(self.roi), permutation)
        return Untransposed(changed(self, **lists), permutation)

    def result_samples(self, operands: Sequence[Samples]) -> Sequence[Samples]:
        crops = text(self.coordinates) == "tf_crop_and_resize"
        along = zip(operands[0].axes, ints(self.shape), self.ratios(), strict=True)
        return [
            operands[0].with_axes(
                [axis if ratio == 1.0 and not crops else resized(axis, size) for axis, size, ratio in along]
            )
        ]

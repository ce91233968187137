"""Resampling along axes: one operator with the coordinate rules of ONNX."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.glow_high.transposition import PerAxis, Untransposed
from glow_mlir.dialects.operand_types import SCALARS, TENSOR
from glow_mlir.dialects.properties import (
    flag,
    flag_prop,
    float_prop,
    floats,
    optional_floats_prop,
    sizes,
    sizes_prop,
    text,
    text_prop,
)
from glow_mlir.dialects.shapes import Shape, element_of, require, sizes_of, tensor
from glow_mlir.dialects.sizes import RunTimeSizeError, largest, smallest, static
from glow_mlir.support.symbols import Size
from glow_mlir.xdsl_patches.definitions import op_definition

MODES = ("nearest", "linear", "cubic")
"""The interpolation between elements of the input."""

MIN_INNER = 8
"""The number of elements behind a resized axis from which vectors run over these."""

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)
"""The rules that map coordinates of the result to coordinates of the input."""

BY_SCALE = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn")
"""The rules by which coordinates depend on the scale and not on sizes, except for results of one element."""

ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""The element that is nearest to a coordinate between two elements."""


def _ratio(before: Size, after: Size) -> float:
    first, last = static((before, after))
    return last / first


@op_definition
class ResizeOp(DataMovement):
    """
    The input resampled to `shape` (ONNX Resize and Upsample), one axis after the other.

    The rule `coordinates` maps coordinates of the result to the input, by `scales`; 0 stands for the ratio of the
    sizes, which is the default. `roi`, all starts and then all ends as fractions of the axes, is for
    `tf_crop_and_resize` only, which sets elements outside the input to `extrapolation`. `rounding` is for mode
    `nearest`: its coordinates are exact if the scale is the ratio of the sizes, and computed in f32 for other scales.
    `cubic_coefficient` is for `cubic`. With `antialias`, the kernel widens where an axis shrinks. With
    `exclude_outside`, elements beyond the border do not count; otherwise the last element is repeated. An axis whose
    size is known at run time only may change only by a rule of `BY_SCALE`.

    ```mlir
    %y = glow_high.resize %x {shape = [1, 64, 56, 56], mode = "linear"} : tensor<1x64x56x56xf32>
    ```
    """

    name = "glow_high.resize"
    LIST_PROPERTIES: ClassVar[Mapping[str, PerAxis]] = {
        "shape": PerAxis.EXTENT,
        "scales": PerAxis.FACTOR,
        "roi": PerAxis.ENDS,
    }

    input = operand_def(SCALARS)
    shape = sizes_prop()
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
        """The scale of each axis: elements of the result per element of the input."""
        given = sizes_of(self.input)
        scales = floats(self.scales) or (0.0,) * len(given)
        axes = zip(scales, given, sizes(self.shape), strict=True)
        return tuple(scale or (1.0 if before == after else _ratio(before, after)) for scale, before, after in axes)

    def by_sizes(self) -> tuple[bool, ...]:
        """For each axis, whether its scale is the ratio of its sizes, which is exact."""
        return tuple(scale == 0 for scale in floats(self.scales)) or (True,) * len(sizes_of(self.input))

    def region(self, axis: int) -> tuple[float, float]:
        """Where the region of interest starts and ends along an axis."""
        roi = floats(self.roi)
        return (roi[axis], roi[axis + len(roi) // 2]) if roi else (0.0, 1.0)

    def is_identity(self) -> bool:
        same = sizes_of(self.input) == sizes(self.shape) and all(ratio == 1.0 for ratio in self.ratios())
        return same and text(self.coordinates) != "tf_crop_and_resize"

    def moves_only(self) -> bool:
        return text(self.mode) == "nearest" and text(self.coordinates) != "tf_crop_and_resize"

    def access_map(self) -> AccessMap:
        crops = text(self.coordinates) == "tf_crop_and_resize"
        return self.aligned((axis for axis, ratio in enumerate(self.ratios()) if crops or ratio != 1.0), tiled=0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, given, element = sizes(self.shape), sizes_of(self.input), element_of(self.input)
        for word, words in ((self.mode, MODES), (self.coordinates, COORDINATES), (self.rounding, ROUNDINGS)):
            require(text(word) in words, f"'{text(word)}' is none of {', '.join(words)}")
        require(len(shape) == len(given), f"shape must have {len(given)} elements, one for each axis")
        require(0 not in given, "an input without elements cannot be resized")
        require(len(self.by_sizes()) == len(given), f"scales must have {len(given)} elements, one for each axis")
        require(min(self.ratios(), default=1.0) > 0 or 0 in shape, "scales must be positive")
        require(len(floats(self.roi)) in (0, 2 * len(given)), f"roi must have {2 * len(given)} elements")
        require(all(map(math.isfinite, floats(self.roi))), "roi must be finite")
        nearest = text(self.mode) == "nearest"
        require(nearest or not is_bool(element), f"truth values have no {text(self.mode)} between")
        require(not (nearest and flag(self.antialias)), "antialias needs mode linear or cubic")
        for before, after, ratio in zip(given, shape, self.ratios(), strict=True):
            if not (isinstance(before, int) and isinstance(after, int)) and not (before == after and ratio == 1.0):
                self._check_by_scale(before, ratio)
        return (tensor(shape, element),)

    def _check_by_scale(self, before: Size, ratio: float) -> None:
        """Raise `RunTimeSizeError` if coordinates depend on a size that is known at run time only."""
        word, exact = text(self.coordinates), (smallest(before) * ratio, largest(before) * ratio)
        alike = word in BY_SCALE and not (word == "pytorch_half_pixel" and exact[0] <= 1 <= exact[1])
        if not alike or smallest(before) < 1 or flag(self.exclude_outside):
            raise RunTimeSizeError(before)

    def untransposed(self, permutation: Shape) -> Untransposed | None:
        resized = [permutation[axis] for axis, ratio in enumerate(self.ratios()) if ratio != 1.0]
        if text(self.mode) != "nearest" and resized != sorted(resized):
            return None  # Axes are resampled in order, and each one rounds.
        return super().untransposed(permutation)

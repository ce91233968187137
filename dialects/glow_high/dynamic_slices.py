"""Parts of known size whose start along an axis is an operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, result_def

from glow_mlir.dialects.glow_high.access import AccessMap, free_axes, starred
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.glow_high.ranges import Range
from glow_mlir.dialects.operand_types import INDICES, TENSOR
from glow_mlir.dialects.properties import int_prop, integer, size, size_prop
from glow_mlir.dialects.shapes import (
    element_of,
    has_one_element,
    normalize_axis,
    rank_of,
    require,
    require_equal,
    sizes_of,
    tensor,
)
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.xdsl_patches.definitions import op_definition


def _check_start(start: SSAValue) -> None:
    """Raise `VerifyException` for a start that is not one number."""
    require(has_one_element(start), f"a start is one number, not {start.type}")


@op_definition
class DynamicSliceOp(DataMovement):
    """
    `size` consecutive elements of `input` along `axis`, from `start` on (StableHLO dynamic_slice, one axis at a time).

    The start is clamped, so that the slice is in the input.

    ```mlir
    %y = glow_high.dynamic_slice %x, %start {axis = 0, size = 2} : tensor<2x768xf32>
    ```
    """

    name = "glow_high.dynamic_slice"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)

    input = operand_def(TENSOR)
    start = operand_def(INDICES)
    axis = int_prop(0)
    size = size_prop(1)
    result = result_def(TENSOR)

    def is_identity(self) -> bool:
        return sizes_of(self.input) == sizes_of(self.result)

    def access_map(self) -> AccessMap:
        axes = free_axes(rank_of(self.input))
        taken = starred(axes, (normalize_axis(integer(self.axis), len(axes)),))
        return AccessMap((taken, ("*",) * rank_of(self.start)), (taken,))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        _check_start(self.start)
        shape, taken = list(sizes_of(self.input)), size(self.size)
        axis = normalize_axis(integer(self.axis), len(shape))
        require(smallest(taken) >= 0, "size must not be negative")
        require(largest(taken - shape[axis]) <= 0, f"axis {axis} has {shape[axis]} elements, fewer than {taken}")
        shape[axis] = taken
        return (tensor(shape, element_of(self.input)),)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0]


@op_definition
class DynamicUpdateSliceOp(HighOp):
    """
    `input` with its elements along `axis` from `start` on replaced by `update` (StableHLO dynamic_update_slice).

    The update has the sizes of the input along all other axes. The start is clamped, so that the update is in the
    input.

    ```mlir
    %y = glow_high.dynamic_update_slice %x, %row, %start {axis = 0} : tensor<128x768xf32>
    ```
    """

    name = "glow_high.dynamic_update_slice"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = (("result", "input"),)

    input = operand_def(TENSOR)
    update = operand_def(TENSOR)
    start = operand_def(INDICES)
    axis = int_prop(0)
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        axes = free_axes(rank_of(self.input))
        axis = normalize_axis(integer(self.axis), len(axes))
        whole = starred(axes, (axis,))
        replaced = (*whole[:axis], "*replaced", *whole[axis + 1 :])
        return AccessMap((whole, replaced, ("*",) * rank_of(self.start)), (whole,))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        _check_start(self.start)
        shape, new = sizes_of(self.input), sizes_of(self.update)
        axis = normalize_axis(integer(self.axis), len(shape))
        message = f"an update of shape {new} does not fit an input of shape {shape}"
        require(len(new) == len(shape), message)
        require_equal((*new[:axis], *new[axis + 1 :]), (*shape[:axis], *shape[axis + 1 :]), message)
        require(largest(new[axis] - shape[axis]) <= 0, message)
        element = element_of(self.input)
        require(
            element_of(self.update) == element, f"the update is of {element_of(self.update)}, the input of {element}"
        )
        return (tensor(shape, element),)

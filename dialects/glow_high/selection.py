"""
Operators whose number of results depends on the elements of their operands.

Results have their maximum size, for all values of symbols. Valid elements come first along the varying axis, followed
by zeros. The last result, a single i64, is the number of valid elements: a symbol is bound to it (`bind_symbol`), and a
slice takes that many.
"""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.operand_types import F32, INDICES, SCALARS, TENSOR
from glow_mlir.dialects.properties import flag_prop, int_prop, integer
from glow_mlir.dialects.shapes import (
    element_of,
    has_one_element,
    largest_shape,
    rank_of,
    require,
    require_equal,
    sizes_of,
    tensor,
)
from glow_mlir.dialects.sizes import largest
from glow_mlir.xdsl_patches.definitions import op_definition

COUNT = tensor((), i64)
"""The type of the number of valid elements."""


@op_definition
class NonZeroOp(HighOp):
    """
    The indices of all elements that are not zero, in row-major order, as the columns of [rank, size] (ONNX NonZero).

    ```mlir
    %places, %count = glow_high.non_zero %x : tensor<2x6xi64>, tensor<i64>
    ```
    """

    name = "glow_high.non_zero"
    NOTATION: ClassVar[str] = "input[*] -> result[*], count[*]"

    input = operand_def(SCALARS.from_rank(1))
    result = result_def(TENSOR)
    count = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return (tensor((rank_of(self.input), math.prod(largest_shape(self.input))), i64), COUNT)


@op_definition
class UniqueOp(HighOp):
    """
    The distinct rows of `input` [N, M] (ONNX Unique), ordered if `sorted`, otherwise in order of first occurrence.

    Further results: `indices` has the first occurrence of each distinct row, `inverse` the distinct row of each row of
    the input, and `occurrences` the count of each distinct row. Rows are compared element by element; NaN equals NaN
    and comes last.
    """

    name = "glow_high.unique"
    NOTATION: ClassVar[str] = "input[*] -> result[*], indices[*], inverse[*], occurrences[*], count[*]"

    input = operand_def(SCALARS.of_rank(2))
    sorted = flag_prop(True)
    result = result_def(TENSOR)
    indices = result_def(TENSOR)
    inverse = result_def(TENSOR)
    occurrences = result_def(TENSOR)
    count = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        rows, width = sizes_of(self.input)
        most = tensor((largest(rows),), i64)
        return (tensor((largest(rows), width), element_of(self.input)), most, tensor((rows,), i64), most, COUNT)


@op_definition
class NonMaxSuppressionOp(HighOp):
    """
    The best of overlapping boxes for each class (ONNX NonMaxSuppression): rows of batch, class and box.

    `boxes` is [B, N, 4], two corners (y, x), or with `center_point_box` the center (x, y), width and height; `scores`
    is [B, C, N]. For each class, the box with the highest score above `score_threshold` is selected, and all boxes that
    overlap it by more than `iou_threshold` of their union are dropped. This repeats up to `max_output_boxes_per_class`
    times; without that operand, no box is selected. The capacity of results is `limit` boxes for each class:
    [B * C * limit, 3].
    """

    name = "glow_high.non_max_suppression"
    NOTATION: ClassVar[str] = "boxes[*], scores[*] -> result[*], count[*]"
    irdl_options = SEGMENTS

    boxes = operand_def(F32.of_rank(3))
    scores = operand_def(F32.of_rank(3))
    max_output_boxes_per_class = opt_operand_def(INDICES)
    iou_threshold = opt_operand_def(F32)
    score_threshold = opt_operand_def(F32)
    center_point_box = flag_prop()
    limit = int_prop()
    result = result_def(TENSOR)
    count = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        boxes, scores, limit = sizes_of(self.boxes), sizes_of(self.scores), integer(self.limit)
        message = f"scores of shape {scores} do not fit boxes of shape {boxes}"
        require_equal(boxes, (scores[0], scores[2], 4), message)
        require(0 <= limit <= largest(boxes[1]), f"the limit is at most the number of boxes, {boxes[1]}, not {limit}")
        for operand in (self.max_output_boxes_per_class, self.iou_threshold, self.score_threshold):
            require(operand is None or has_one_element(operand), "limits and thresholds are single numbers")
        return (tensor((largest(scores[0]) * largest(scores[1]) * limit, 3), i64), COUNT)

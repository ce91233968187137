"""Sums of table rows selected by segments of indices: the embedding bags of recommendation networks."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.element_types import is_float, ui8
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.operand_types import FLOATS, INDICES, NUMBERS, TENSOR
from glow_mlir.dialects.properties import flag, flag_prop, text, text_prop
from glow_mlir.dialects.shapes import element_of, require, require_equal, sizes_of, tensor
from glow_mlir.dialects.sizes import smallest, static
from glow_mlir.xdsl_patches.definitions import op_definition

FUSED_BYTES = 8
"""Bytes after the quantized values of a fused row: scale and offset in f32."""

BOUNDS = ("lengths", "starts", "edges")
"""The ways to specify segments: the length of each, the start of each, or all starts and the end of the last one."""


@op_definition
class SparseLengthsSumOp(HighOp):
    """
    For each segment of `indices` [I], the sum of the selected rows of `data` [D, W]: [S, W] (Glow, Caffe2).

    `segments` has i32 or i64 of the kind `bounds`: lengths [S], starts [S], or edges [S + 1]. `weights` [I] are factors
    of the rows. Rows of ui8 are codes: a number is scale * code + offset, with `scales` and `offsets` [D], or with
    `fused` rows that have both in f32 in their last 8 bytes. Then the result is f32.

    ```mlir
    %y = glow_high.sparse_lengths_sum %table, %indices, %lengths, %weights : tensor<4x64xf32>
    ```
    """

    name = "glow_high.sparse_lengths_sum"
    irdl_options = SEGMENTS
    FAILURE: ClassVar[str] = "an index or a segment is out of range"

    data = operand_def(NUMBERS.of_rank(2))
    indices = operand_def(INDICES.of_rank(1))
    segments = operand_def(INDICES.of_rank(1))
    weights = opt_operand_def(FLOATS.of_rank(1))
    scales = opt_operand_def(FLOATS.of_rank(1))
    offsets = opt_operand_def(FLOATS.of_rank(1))
    bounds = text_prop("lengths")
    fused = flag_prop()
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        column = "*w" if flag(self.fused) else "w"
        return self.accessed(f"data[*d, {column}], indices[*], segments[*] -> result[*s, {column}]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        (rows, columns), element = sizes_of(self.data), element_of(self.data)
        (width,) = static((columns,))
        kind, fused = text(self.bounds), flag(self.fused)
        require(kind in BOUNDS, f"'{kind}' is none of {', '.join(BOUNDS)}")
        is_code = element == ui8
        require(is_code or is_float(element), f"rows are floats or codes of ui8, not {element}")
        scaled = self.scales is not None and self.offsets is not None
        require((self.scales is None) == (self.offsets is None), "codes have scales and offsets")
        require((scaled != fused) if is_code else not (scaled or fused), "codes, and only these, have scales once")
        require(not fused or width >= FUSED_BYTES, f"a fused row has {FUSED_BYTES} bytes or more, not {width}")
        for operand in (self.scales, self.offsets):
            if operand is not None:
                require_equal(sizes_of(operand), (rows,), f"{rows} rows need as many scales and offsets")
        indices = sizes_of(self.indices)
        if self.weights is not None:
            require_equal(sizes_of(self.weights), indices, "each index has one weight")
        count = sizes_of(self.segments)[0] - (kind == "edges")
        require(smallest(count) >= 0, "edges are one number or more")
        return (tensor((count, width - FUSED_BYTES if fused else width), f32 if is_code else element),)

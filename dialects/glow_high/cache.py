"""Keys and values of sequences in one table, in which the length of each sequence depends on data."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, result_def

from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.operand_types import FLOATS, INDICES
from glow_mlir.dialects.properties import size, size_prop
from glow_mlir.dialects.shapes import element_of, require, require_equal, sizes_of, tensor
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.errors import CHANGES_SHARED_ROWS
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class ExtendCacheOp(HighOp):
    """
    The first `starts[b]` rows of `past` [B, H, P, D], then `rows` [B, H, N, D] up to row `ends[b]`, then zeros.

    The result is [B, H, `length`, D], for each sequence b of the batch. Row j of it is row j of `past` before the
    start, and row j - `starts[b]` of `rows` from there on; rows that do not exist are 0 as well. Starts and ends may be
    negative or beyond the result.

    The result may share the memory of `past` if all sequences start at row P or later: then only the rows behind P are
    written. For any other start, the operator fails in shared memory, and leaves all rows of `past` as they are.

    ```mlir
    %keys = glow_high.extend_cache %past, %rows, %starts, %ends {length = 9} : tensor<2x8x9x64xf16>
    ```
    """

    name = "glow_high.extend_cache"
    FAILURE: ClassVar[str] = CHANGES_SHARED_ROWS

    past = operand_def(FLOATS.of_rank(4))
    rows = operand_def(FLOATS.of_rank(4))
    starts = operand_def(INDICES.of_rank(1))
    ends = operand_def(INDICES.of_rank(1))
    length = size_prop(0)
    result = result_def(FLOATS)

    def access_map(self) -> AccessMap:
        return self.accessed("past[*b, h, *p, d], rows[*b, h, *n, d], starts[*b], ends[*b] -> result[*b, h, *l, d]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        (batch, heads, _, depth), rows = sizes_of(self.past), sizes_of(self.rows)
        element, length = element_of(self.past), size(self.length)
        require(
            element_of(self.rows) == element, f"rows are of {element_of(self.rows)}, those of the past of {element}"
        )
        message = f"rows of {rows} do not follow those of {sizes_of(self.past)}"
        require_equal((*rows[:2], rows[3]), (batch, heads, depth), message)
        for name, operand in (("a start", self.starts), ("an end", self.ends)):
            (count,) = sizes_of(operand)
            require_equal(count, batch, f"there must be {name} for each of {batch} sequences, not {count}")
        require(smallest(length) >= 0, "length must not be negative")
        return (tensor((batch, heads, length, depth), element),)

    def extended(self) -> SSAValue | None:
        before = sizes_of(self.past)[2]
        fits = largest(before) <= largest(size(self.length))
        return self.past if fits and not isinstance(before, int) else None

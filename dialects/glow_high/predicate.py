"""Predicates: hints that parts of a value are never read."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def

from glow_mlir.dialects.glow_high.access import AccessMap, free_axes
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.operand_types import BOOLS, TENSOR
from glow_mlir.dialects.shapes import element_of, rank_of, require, sizes_of, tensor
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class PredicateOp(HighOp):
    """
    A value some of whose elements are never read and need not be computed (paper §3.3).

    `mask` has the leading axes of `value` and marks the elements that are read. It is a hint: without it, the result is
    `value`.

    ```mlir
    %logits = glow_high.matmul %states, %embeddings : tensor<16x64x50000xf32>
    %shown = glow_high.predicate %logits, %is_token : tensor<16x64x50000xf32>
    ```
    """

    name = "glow_high.predicate"

    value = operand_def(TENSOR)
    mask = operand_def(BOOLS.from_rank(1))
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        axes = free_axes(rank_of(self.value))
        return AccessMap((axes, axes[: rank_of(self.mask)]), (axes,))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        sizes, mask = sizes_of(self.value), sizes_of(self.mask)
        require(mask == sizes[: len(mask)], f"the mask has shape {mask}, which are no leading axes of {sizes}")
        return (tensor(sizes, element_of(self.value)),)

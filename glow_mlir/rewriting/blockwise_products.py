"""Let products and gathers read block-quantized weights directly."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.blockwise import BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.properties import flag, integer, ints
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of
from glow_mlir.ir.patterns import Pattern, rooted
from glow_mlir.ir.rewriter import Rewriter


class MultiplyBlocks(Pattern):
    """Replace a product with a dequantized constant matrix by a blockwise product that reads the quantized blocks."""

    @rooted
    def match_and_rewrite(self, op: MatMulOp | FullyConnectedOp, rewriter: Rewriter, /) -> None:
        left, right = op.operands[:2]
        is_turned = isinstance(op, MatMulOp) and flag(op.transpose_right)
        weights = _blocks(right, is_turned)
        if weights is None or element_of(left) != f32 or (isinstance(op, MatMulOp) and flag(op.transpose_left)):
            return
        if not all(map(rewriter.storage.is_constant, weights.operands)):
            return
        operands = left, weights.codes, weights.scales, weights.zero_points, op.bias
        rewriter.replace(op, BlockwiseMatMulOp.make(*operands, **weights.form()))


def _blocks(right: SSAValue, is_turned: bool) -> BlockwiseDequantizeOp | None:
    """The dequantized [N, K] behind a right operand: the operand itself if `is_turned`, else its transpose."""
    value = right
    if not is_turned:
        if not isinstance(right.owner, TransposeOp) or ints(right.owner.permutation) != (1, 0):
            return None
        value = right.owner.input
    found = value.owner
    return found if isinstance(found, BlockwiseDequantizeOp) and rank_of(value) == 2 else None


class GatherBlocks(Pattern):
    """Gather rows of quantized blocks, then dequantize them, instead of gathering dequantized rows."""

    @rooted
    def match_and_rewrite(self, op: GatherOp, rewriter: Rewriter, /) -> None:
        table = op.input.owner
        if not isinstance(table, BlockwiseDequantizeOp):
            return
        rank = rank_of(op.input)
        axis = normalize_axis(integer(op.axis), rank)
        if axis == rank - 1:
            return
        parts = (table.codes, table.scales, table.zero_points)
        rows = [None if part is None else rewriter.emit(GatherOp, part, op.indices, axis=axis) for part in parts]
        rewriter.replace(op, BlockwiseDequantizeOp.make(*rows, **table.form()))

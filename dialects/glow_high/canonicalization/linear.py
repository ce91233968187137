"""Rewrites of matrix products."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.shapes import rank_of, shape_of


class MatrixForAllBatches(RewritePattern):
    """
    A right operand whose batch axes have size one is a matrix, which all rows of all batches are multiplied by (Glow's
    ConvertBroadcastedBatchMatMul).
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatMulOp, rewriter: PatternRewriter, /) -> None:
        *batch, rows, columns = shape_of(op.right)
        if not batch or set(batch) != {1} or rank_of(op.left) < rank_of(op.right):
            return
        matrix = ReshapeOp.make(op.right, shape=(rows, columns), location=op.location)
        flags = {"transpose_left": op.transpose_left, "transpose_right": op.transpose_right}
        product = MatMulOp.make(op.left, matrix, op.bias, location=op.location, **flags)
        rewriter.replace(op, [matrix, product])


PATTERNS: tuple[RewritePattern, ...] = (MatrixForAllBatches(),)
"""The patterns of `matmul`."""

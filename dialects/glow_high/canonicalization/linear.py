"""Rewrites of matrix products."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.shapes import broadcast, rank_of, shape_of, sizes_of


class MatrixForAllBatches(RewritePattern):
    """
    Replace a right operand whose batch axes have size one by a matrix that all rows of all batches are multiplied by
    (Glow's ConvertBroadcastedBatchMatMul).
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatMulOp, rewriter: PatternRewriter, /) -> None:
        *batch, rows, columns = shape_of(op.right)
        if not batch or set(batch) != {1} or rank_of(op.left) < rank_of(op.right):
            return
        matrix = ReshapeOp.make(op.right, shape=(rows, columns), location=op.location)
        flags = {"transpose_left": op.transpose_left, "transpose_right": op.transpose_right}
        product = MatMulOp.make(op.left, matrix, op.bias, to=op.to, location=op.location, **flags)
        rewriter.replace(op, [matrix, product])


class ExpandedFactor(RewritePattern):
    """Remove the expand of a factor along the batches of the other one: products broadcast."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatMulOp, rewriter: PatternRewriter, /) -> None:
        left, right = unexpanded(op.left), unexpanded(op.right)
        batches = sizes_of(op.result)[:-2]
        flags = {"transpose_left": op.transpose_left, "transpose_right": op.transpose_right}
        for factors in ((left, right), (op.left, right), (left, op.right)):
            is_same = factors == (op.left, op.right)
            if not is_same and broadcast(*(sizes_of(factor)[:-2] for factor in factors)) == batches:
                product = MatMulOp.make(*factors, op.bias, to=op.to, location=op.location, **flags)
                rewriter.replace(op, product)
                return


def unexpanded(factor: SSAValue) -> SSAValue:
    """The matrix that a factor repeats for each batch; the factor itself if it does not repeat a whole matrix."""
    expand = factor.owner
    if not isinstance(expand, ExpandOp) or rank_of(expand.input) < 2:
        return factor
    return expand.input if sizes_of(expand.input)[-2:] == sizes_of(factor)[-2:] else factor


PATTERNS: tuple[RewritePattern, ...] = (MatrixForAllBatches(), ExpandedFactor())
"""The patterns of `matmul`."""

"""Rewrites of reductions."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.reductions import Reduction
from glow_mlir.dialects.shapes import sizes_of


class ReductionOfSingleElements(RewritePattern):
    """Replace a fold along axes of size 1, which gives its elements, by a reshape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Reduction, rewriter: PatternRewriter, /) -> None:
        sizes = sizes_of(op.input)
        if not op.KEEPS_SINGLE or any(sizes[axis] != 1 for axis in op.reduced_axes()):
            return
        same = ReshapeOp.make(op.input, shape=sizes_of(op.result), location=op.location)
        rewriter.replace(op, [same], [same.result])


PATTERNS: tuple[RewritePattern, ...] = (ReductionOfSingleElements(),)
"""The patterns of reductions."""

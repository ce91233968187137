"""Rewrites of pools."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.glow_high.pooling import MaxPoolOp, MaxPoolWithIndicesOp
from glow_mlir.dialects.properties import flag


class PoolWithoutIndices(RewritePattern):
    """Replace a pool whose indices are unused by one that computes only the largest elements."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MaxPoolWithIndicesOp, rewriter: PatternRewriter, /) -> None:
        if any(op.indices.uses):
            return
        window = {"kernel_shape": op.kernel_shape, "strides": op.strides, "pads": op.pads, "dilations": op.dilations}
        pool = MaxPoolOp.make(op.input, **window, ceil_mode=flag(op.ceil_mode), layout=op.layout, location=op.location)
        rewriter.replace(op, [pool], [pool.result, pool.result])  # Nothing reads the second one.


PATTERNS: tuple[RewritePattern, ...] = (PoolWithoutIndices(),)
"""The patterns of `max_pool_with_indices`."""

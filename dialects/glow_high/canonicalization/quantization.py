"""Rewrites of operators on quantized values: only the last of consecutive changes of type counts."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.quantization import StorageCastOp


class StorageCastOfStorageCast(RewritePattern):
    """Only the last type counts."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: StorageCastOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, StorageCastOp):
            rewriter.replace(op, StorageCastOp.make(inner.input, to=op.to, location=op.location))


PATTERNS: Mapping[type[Elementwise], tuple[RewritePattern, ...]] = {StorageCastOp: (StorageCastOfStorageCast(),)}
"""Operator → its patterns."""

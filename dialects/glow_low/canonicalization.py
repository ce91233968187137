"""Rewrites of views and copies: they are composed, or removed if they change nothing (Glow's peepholes)."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.glow_low.loop import is_same_buffer
from glow_mlir.dialects.glow_low.memory import CopyOp, ViewOp, root_of
from glow_mlir.dialects.shapes import size_of


class IdentityView(RewritePattern):
    """Replace a view of the same type by its source."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ViewOp, rewriter: PatternRewriter, /) -> None:
        if op.result.type == op.source.type:
            rewriter.replace(op, [], [op.source])


class ViewOfView(RewritePattern):
    """Compose two views: offsets count from the start of the allocation, so that only the last type counts."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ViewOp, rewriter: PatternRewriter, /) -> None:
        if isinstance(op.source.owner, ViewOp):
            view = ViewOp.of(root_of(op.source), op.result.type, op.location)
            rewriter.replace(op, view)


class CopyOfNothing(RewritePattern):
    """Remove a copy of a buffer to itself, or of an empty buffer."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CopyOp, rewriter: PatternRewriter, /) -> None:
        if is_same_buffer(op.target, op.source) or not size_of(op.target.type):
            rewriter.erase(op)


VIEW_PATTERNS = (IdentityView(), ViewOfView())
COPY_PATTERNS = (CopyOfNothing(),)

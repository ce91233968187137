"""`remove-identity-clips`: drop clips and ReLUs of tensors whose elements lie in the range anyway."""

from __future__ import annotations

from glow_mlir.analysis.ranges import value_ranges
from glow_mlir.dialects.glow_high.canonicalization.clips import Limiting, limits_of
from glow_mlir.dialects.glow_high.ranges import Range
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


class RemoveIdentityClip(Pattern):
    """A clip to a range in which all elements lie is nothing."""

    @rooted
    def match_and_rewrite(self, op: Limiting, rewriter: Rewriter, /) -> None:
        limits = limits_of(op)
        if limits is None:
            return
        known = rewriter.analysis(value_ranges).get(limits.input, Range())
        if known.within(limits.low, limits.high):
            rewriter.replace(op, (), [limits.input])


@dataclass(frozen=True)
class RemoveIdentityClipsPass(PatternPass):
    """
    Drop operators that limit elements to a range in which they lie (Glow's RemoveIdentityRelu and RemoveIdentityClip).

    That a sigmoid is in [0, 1], or a maximum of positive numbers positive, is known by `analysis.ranges`.
    """

    name = "remove-identity-clips"
    WALKS = (Walk((RemoveIdentityClip(),)),)

"""`remove-identity-clips`: drop clips and ReLUs whose operand is known to be in range."""

from __future__ import annotations

from glow_mlir.analysis.ranges import value_ranges
from glow_mlir.dialects.glow_high.canonicalization.clips import Limiting, limits_of
from glow_mlir.dialects.glow_high.ranges import Range
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


class RemoveIdentityClip(Pattern):
    """Remove a clip whose range contains all elements."""

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
    Drop operators that limit elements to a range that contains them (Glow's RemoveIdentityRelu and RemoveIdentityClip).

    `analysis.ranges` knows, for example, that a sigmoid is in [0, 1] and a maximum with a positive number positive.
    """

    name = "remove-identity-clips"
    WALKS = (Walk((RemoveIdentityClip(),)),)

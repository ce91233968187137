"""`sink-clips`: clip the results of max and min selections instead of their operands."""

from __future__ import annotations

from xdsl.ir import Operation

from glow_mlir.backends.interface import costs_of
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.clips import limits_of
from glow_mlir.dialects.shapes import size_of
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.graph.raise_clips import scalar


class SinkClip(Pattern):
    """Clip the selected elements instead of all candidates."""

    @rooted
    def match_and_rewrite(self, op: HighOp, rewriter: Rewriter, /) -> None:
        if not op.chooses_elements() or costs_of(rewriter.function.target).limit_operations == 1:
            return
        clip = op.operands[0].owner
        limits = limits_of(clip) if isinstance(clip, Operation) else None
        if limits is None or not isinstance(clip, HighOp) or not op.operands[0].has_one_use():
            return
        if size_of(op.operands[0].type) <= size_of(op.results[0].type):
            return
        chosen = rewriter.emit.insert(type(op).inferred([limits.input, *op.operands[1:]], op.properties, op.location))
        operands = [
            chosen.results[0] if value is limits.input else scalar(value, rewriter.emit) for value in clip.operands
        ]
        rewriter.replace(op, type(clip).inferred(operands, clip.properties, clip.location))
        rewriter.erase(clip)


@dataclass(frozen=True)
class SinkClipsPass(PatternPass):
    """
    Move ReLUs and clips below operators that select the largest or the smallest elements, such as max-pools.

    Applies on machines where clips are not fused into products for free: a 2x2 window reads four times as many elements
    as it yields.
    """

    name = "sink-clips"
    WALKS = (Walk((SinkClip(),)),)

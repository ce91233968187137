"""`sink-clips`: clip what is left of elements of which the largest or smallest are chosen, not all of them."""

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
    """Elements that are chosen from clipped ones are clipped when they are chosen."""

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
    Move ReLUs and clips below operators that choose the largest or the smallest of some elements, such as max-pools.

    It is worth it on machines where they are no part of a product for nothing: in front of a window of 2x2 there are
    four times as many.
    """

    name = "sink-clips"
    WALKS = (Walk((SinkClip(),)),)

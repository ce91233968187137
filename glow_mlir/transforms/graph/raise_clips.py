"""`raise-clips`: move clips above data movement, so that they can be fused with the producer."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.clips import Limiting, Limits, limits_of
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, DataMovement, PadOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import rank_of, size_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


class RaiseClip(Pattern):
    """Clip the operands of a data movement instead of its result."""

    @rooted
    def match_and_rewrite(self, op: Limiting, rewriter: Rewriter, /) -> None:
        limits = limits_of(op)
        mover = None if limits is None else limits.input.owner
        if limits is None or not isinstance(mover, DataMovement):
            return
        if not limits.input.has_one_use() or not commutes(mover, limits):
            return
        count = len(mover.operands) if isinstance(mover, ConcatOp) else 1
        emit = rewriter.emit
        clips: list[SSAValue] = []
        for value in mover.operands[:count]:
            operands = [value if operand is limits.input else scalar(operand, emit) for operand in op.operands]
            clips += emit.insert(type(op).inferred(operands, op.properties, op.location)).results
        moved = type(mover).inferred([*clips, *mover.operands[count:]], mover.properties, mover.location)
        rewriter.replace(op, moved)
        rewriter.erase(mover)


@dataclass(frozen=True)
class RaiseClipsPass(PatternPass):
    """
    Move ReLUs and clips above operators that only move elements (Glow's RaiseClipsAboveShapeNodes).

    Applies if no more elements are clipped than before, so not above a slice. Above a concatenation, every operand must
    be computed for it alone, so that the clip is fused for free. The border of a pad must be within the range.
    """

    name = "raise-clips"
    WALKS = (Walk((RaiseClip(),), backward=True, recursive=True),)


def scalar(limit: SSAValue, emit: Emitter) -> SSAValue:
    """A rank-0 limit, which fits operands of any shape."""
    return limit if rank_of(limit) == 0 else emit(SplatOp, value=limit.owner.value, shape=())  # pyright: ignore


def commutes(mover: DataMovement, limits: Limits) -> bool:
    """Whether clipping the operands of `mover` is equivalent, and costs no more."""
    if isinstance(mover, ConcatOp):
        return all(part.has_one_use() and is_computed(part) for part in mover.parts)
    if not mover.moves_only() or size_of(mover.operands[0].type) > size_of(mover.results[0].type):
        return False
    if isinstance(mover, PadOp) and text(mover.mode) == "constant":
        fill = 0 if mover.value is None else splat_number(mover.value)
        return fill is not None and limits.limited(fill) == fill
    return True


def is_computed(value: SSAValue) -> bool:
    """Whether an operator computes `value`, rather than moving its elements."""
    return isinstance(value.owner, HighOp) and not isinstance(value.owner, DataMovement | SplatOp)

"""`sink-conversions`: move elements in the narrower of two types around a conversion."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, DataMovement
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.shapes import element_of, size_of
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


class SinkWideningConversion(Pattern):
    """Move elements before a conversion to a wider type, unless the movement enlarges the tensor."""

    @rooted
    def match_and_rewrite(self, op: DataMovement, rewriter: Rewriter, /) -> None:
        operands = moved_operands(op)
        casts = [value.owner for value in operands if isinstance(value.owner, CastOp) and value.has_one_use()]
        if not casts or len(casts) < len(operands):
            return
        if size_of(op.results[0].type) > sum(size_of(value.type) for value in operands):
            return
        sources = [cast.input for cast in casts]
        narrow = {element_of(source) for source in sources}
        if len(narrow) > 1 or byte_width(narrow.pop()) >= byte_width(casts[0].to):
            return
        moved = rewriter.emit.insert(type(op).inferred(sources, op.properties, op.location))
        rewriter.replace(op, CastOp.make(moved, to=casts[0].to, location=casts[0].location))


class RaiseNarrowingConversion(Pattern):
    """Convert elements to a narrower type before a movement, unless that converts more elements."""

    @rooted
    def match_and_rewrite(self, op: CastOp, rewriter: Rewriter, /) -> None:
        mover = op.input.owner
        if not isinstance(mover, DataMovement) or not op.input.has_one_use():
            return
        operands = moved_operands(mover)
        elements = sum(size_of(value.type) for value in operands)
        if not operands or elements > size_of(op.result.type) or byte_width(op.to) >= byte_width(element_of(op.input)):
            return
        sources = [rewriter.emit(CastOp, value, to=op.to) for value in operands]
        rewriter.replace(op, type(mover).inferred(sources, mover.properties, mover.location))
        rewriter.erase(mover)


@dataclass(frozen=True)
class SinkConversionsPass(PatternPass):
    """
    Convert to a wider type below operators that only move elements, and to a narrower one above them (Glow's
    SinkConversions).

    No more elements are converted than before; values with other readers stay.
    """

    name = "sink-conversions"
    WALKS = (
        Walk((SinkWideningConversion(),)),
        Walk((RaiseNarrowingConversion(),), backward=True, recursive=True),
    )


def moved_operands(op: DataMovement) -> list[SSAValue]:
    """The operands of `op` if it only moves elements and has no others; else none."""
    return list(op.operands) if isinstance(op, ConcatOp) or (op.moves_only() and len(op.operands) == 1) else []

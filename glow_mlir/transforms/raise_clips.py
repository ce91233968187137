"""`raise-clips`: clip elements before they are moved, so that what computes them can clip them too."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.clips import Limits, limits_of
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, DataMovement, PadOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import rank_of, size_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace


@dataclass(frozen=True)
class RaiseClipsPass(ModulePass):
    """
    Move ReLUs and clips above operators that only move elements (Glow's RaiseClipsAboveShapeNodes).

    It is worth it where no more elements are clipped than before: not above a slice. Above a concatenation, every
    operand has to be computed for it alone, so that its clip costs nothing there. The border of a pad has to be in the
    range.
    """

    name = "raise-clips"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in reversed(list(function.block.ops)):
                pending = [candidate]
                while pending:
                    pending += raise_clip(pending.pop(), storage)
            erase_dead(function.block)


def raise_clip(op: Operation, storage: Storage) -> list[Operation]:
    """Move one clip above the operator that it reads, which goes; returns the clips that take its place."""
    limits = limits_of(op)
    mover = None if limits is None else limits.input.owner
    if limits is None or not isinstance(op, HighOp) or not isinstance(mover, DataMovement):
        return []
    if not limits.input.has_one_use() or not commutes(mover, limits):
        return []
    count = len(mover.operands) if isinstance(mover, ConcatOp) else 1
    emit = Emitter(op, storage)
    clips: list[HighOp] = []
    for value in mover.operands[:count]:
        operands = [value if operand is limits.input else scalar(operand, emit) for operand in op.operands]
        clip = type(op).inferred(operands, op.properties, op.location)
        emit.insert(clip)
        clips.append(clip)
    moved = [*(clip.results[0] for clip in clips), *mover.operands[count:]]
    new = emit.insert(type(mover).inferred(moved, mover.properties, mover.location))
    replace(op, [new.results[0]])
    Rewriter.erase_op(mover)
    return [*clips]


def scalar(limit: SSAValue, emit: Emitter) -> SSAValue:
    """A limit without axes, which fits operands of any shape."""
    return limit if rank_of(limit) == 0 else emit(SplatOp, value=limit.owner.value, shape=())  # pyright: ignore


def commutes(mover: DataMovement, limits: Limits) -> bool:
    """Whether clipping what `mover` moves gives the same, and costs no more."""
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

"""`sink-conversions`: move elements in the narrower of two types, where they are converted before or after."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, DataMovement
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.shapes import element_of, size_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace


@dataclass(frozen=True)
class SinkConversionsPass(ModulePass):
    """
    Convert to a wider type below operators that only move elements, and to a narrower one above them (Glow's
    SinkConversions).

    No more elements are converted than before, and nothing that something else reads as well.
    """

    name = "sink-conversions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, DataMovement):
                    sink_below(candidate, storage)
            for candidate in reversed(list(function.block.ops)):
                pending: list[Operation] = [candidate]
                while pending:
                    pending += raise_above(pending.pop(), storage)
            erase_dead(function.block)


def moved_operands(op: DataMovement) -> list[SSAValue]:
    """The operands that `op` moves, if it moves them as they are and has no others; else none."""
    return list(op.operands) if isinstance(op, ConcatOp) or (op.moves_only() and len(op.operands) == 1) else []


def sink_below(op: DataMovement, storage: Storage) -> None:
    """Move conversions of all operands to a wider type below `op`, which moves no more elements than it reads."""
    operands = moved_operands(op)
    casts = [value.owner for value in operands if isinstance(value.owner, CastOp) and value.has_one_use()]
    if not casts or len(casts) < len(operands) or size_of(op.results[0].type) > sum(size_of(v.type) for v in operands):
        return
    sources = [cast.input for cast in casts]
    narrow = {element_of(source) for source in sources}
    if len(narrow) > 1 or byte_width(narrow.pop()) >= byte_width(casts[0].to):
        return
    emit = Emitter(op, storage)
    new = emit.insert(type(op).inferred(sources, op.properties, op.location))
    result = emit(CastOp, new.results[0], to=casts[0].to)
    emit.emitted[-1].location = casts[0].location
    replace(op, [result])


def raise_above(op: Operation, storage: Storage) -> list[Operation]:
    """Move a conversion to a narrower type above what moves its operand; returns those that take its place."""
    mover = op.input.owner if isinstance(op, CastOp) else None
    if not isinstance(op, CastOp) or not isinstance(mover, DataMovement) or not op.input.has_one_use():
        return []
    operands = moved_operands(mover)
    elements = sum(size_of(value.type) for value in operands)
    if not operands or elements > size_of(op.result.type) or byte_width(op.to) >= byte_width(element_of(op.input)):
        return []
    emit = Emitter(op, storage)
    sources = [emit(CastOp, value, to=op.to) for value in operands]
    casts = list(emit.emitted)
    new = emit.insert(type(mover).inferred(sources, mover.properties, mover.location))
    replace(op, [new.results[0]])
    Rewriter.erase_op(mover)
    return casts

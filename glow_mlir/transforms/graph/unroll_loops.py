"""`unroll-loops`: fully unroll short loops, and partially unroll others."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.control_flow import YieldOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows, Trips
from glow_mlir.dialects.glow_high.storage import GetOp, SplatOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.dialects.symbol_binding import SymbolBinding
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import copied
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass

MAX_OPERATORS = 64
"""Maximum number of operators in unrolled trips: half of the limit of a stack."""


ONCE = (ControlFlowOp, SymbolBinding)
"""Operators that must not be copied."""


class UnrollLoop(Pattern):
    """
    Fully unroll loops of few operators and trips; partially unroll loops that only carry values.

    Values carried between elementwise operators stay in registers, since both trips become one stack. Loops of other
    operators are unrolled by two, so that carried values alternate between two buffers and are never copied.
    """

    @rooted
    def match_and_rewrite(self, op: LoopOp, rewriter: Rewriter, /) -> None:
        trips, body = op.static_trips, operators(op.body.block)
        if op.condition is not None or not body or any(isinstance(inner, ONCE) for inner in body):
            return
        if trips is None and op.trip_count is None:
            return
        if trips is not None and trips * len(body) <= MAX_OPERATORS:
            carried, rows = unrolled(op, range(trips), op.initial, rewriter.emit)
            rewriter.replace(op, [], [*carried, *rows])
            return
        is_plain = not op.scanned and not op.stacked and not op.index.uses
        is_elementwise = all(isinstance(inner, Elementwise) for inner in body)
        factor = MAX_OPERATORS // len(body) if is_elementwise else 2
        if is_plain and 1 < factor <= MAX_OPERATORS // len(body):
            rewriter.replace(op, in_steps(op, factor, rewriter.emit))


def operators(block: Block) -> list[Operation]:
    """The computing operators of a block, without constants and reshapes."""
    return [op for op in own_operations(block) if not isinstance(op, GetOp | SplatOp | ReshapeOp | YieldOp)]


def unrolled(
    loop: LoopOp, trips: range, initial: Sequence[SSAValue], emit: Emitter
) -> tuple[Sequence[SSAValue], list[SSAValue]]:
    """Emit some trips of a loop in sequence; returns the final carried values and the stacked rows."""
    carried, stacks = list(initial), list[list[SSAValue]]()
    for trip in trips:
        number = emit(SplatOp, value=IntegerAttr(trip, i64), shape=()) if loop.index.uses else loop.index
        rows = [_row(rows, trip, emit) for rows in loop.over]
        copies = copied(loop.body.block, [number, *carried, *rows])
        for copy in copies[0]:
            emit.insert(copy)
        carried, row = copies[1][: len(carried)], copies[1][len(carried) :]
        stacks.append(row)
    return carried, [
        _stacked(column, rows, emit) for column, rows in zip(zip(*stacks, strict=True), loop.stacks, strict=True)
    ]


def in_steps(loop: LoopOp, factor: int, emit: Emitter) -> LoopOp:
    """
    Unroll a loop that only carries values by `factor`, after a remainder.

    If the trip count is computed, the remainder is a loop of its own; a count that is not positive gives no trips of
    either, since integer division truncates.
    """
    if loop.static_trips is not None:
        steps, left = divmod(loop.static_trips, factor)
        first, _ = unrolled(loop, range(left), loop.initial, emit)
        return _several_at_once(loop, Trips(steps), first, factor)
    count = loop.trip_count
    assert count is not None
    size = emit(SplatOp, value=IntegerAttr(factor, i64), shape=shape_of(count))
    steps = emit(DivOp, count, size)
    left = emit(SubOp, count, emit(MulOp, steps, size))
    rest = emit.insert(_several_at_once(loop, Trips(left), loop.initial, 1))
    return _several_at_once(loop, Trips(steps), rest.results, factor)


def _several_at_once(loop: LoopOp, trips: Trips, initial: Sequence[SSAValue], factor: int) -> LoopOp:
    """A loop whose trips are `factor` trips of `loop` each."""
    block = Block(arg_types=[argument.type for argument in loop.body.block.args])
    carried: Sequence[SSAValue] = block.args[1:]
    for _ in range(factor):
        copies, carried = copied(loop.body.block, [block.args[0], *carried])
        block.add_ops(copies)
    block.add_op(YieldOp.of(carried, loop.location))
    return LoopOp.of(trips, initial, (), Region(block), (), loop.location)


def _row(rows: Rows, trip: int, emit: Emitter) -> SSAValue:
    """The row of a tensor for one trip."""
    shape = shape_of(rows.value)
    number = shape[0] - 1 - trip if rows.reversed else trip
    rest = (0,) * (len(shape) - 1)
    part = emit(SliceOp, rows.value, starts=(number, *rest), ends=(number + 1, *shape[1:]))
    return emit(ReshapeOp, part, shape=shape[1:])


def _stacked(column: Sequence[SSAValue], rows: Rows, emit: Emitter) -> SSAValue:
    """The rows of all trips as one tensor."""
    ordered = column[::-1] if rows.reversed else column
    parts = [emit(ReshapeOp, value, shape=(1, *shape_of(value))) for value in ordered]
    return emit(ConcatOp, parts, axis=0)


@dataclass(frozen=True)
class UnrollLoopsPass(PatternPass):
    """
    Fully unroll loops of few operators and trips; unroll loops of elementwise operators several times, which makes them
    one pass over memory, and other loops twice, which alternates carried values between two buffers.
    """

    name = "unroll-loops"
    WALKS = (Walk((UnrollLoop(),), backward=True),)

"""`simplify-control-flow`: inline known branches and single trips, and drop unused results and carried values."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Region, SSAValue

from glow_mlir.dialects.element_types import is_integer, numpy_dtype
from glow_mlir.dialects.glow_high.control_flow import IfOp, RegionOp, YieldOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows, Trips
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import element_of, normalize_axis, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.traversal import is_inside, own_operations
from glow_mlir.support.dataclass import dataclass


class InlineKnownBranch(Pattern):
    """Inline the chosen region of a branch with a known condition."""

    @rooted
    def match_and_rewrite(self, op: IfOp, rewriter: Rewriter, /) -> None:
        condition = rewriter.storage.value_of(op.condition)
        if condition is not None:
            inline(op, op.regions[0 if condition.item() else 1], (), rewriter)


class InlineSingleTrip(Pattern):
    """Inline the body of a loop of one trip."""

    @rooted
    def match_and_rewrite(self, op: LoopOp, rewriter: Rewriter, /) -> None:
        if op.static_trips == 1 and op.condition is None:
            emit = rewriter.emit
            rows = [emit(ReshapeOp, rows.value, shape=sizes_of(rows.value)[1:]) for rows in op.over]
            first = emit(SplatOp, value=IntegerAttr(0, i64), shape=())
            inline(op, op.body, [first, *op.initial, *rows], rewriter)


class DropUnusedResults(Pattern):
    """Drop unused results of branches and loops, and carried values that never change."""

    @rooted
    def match_and_rewrite(self, op: RegionOp, rewriter: Rewriter, /) -> None:
        carried = _carried(op) if isinstance(op, LoopOp) else []
        for argument, initial, result, value in carried:
            if value is argument and (result.uses or argument.uses.get_length() > 1):
                rewriter.replace_all_uses_with(result, initial)
                argument.replace_uses_with_if(initial, lambda use: not isinstance(use.operation, YieldOp))
        dropped: set[SSAValue] = {result for result in op.results if not result.uses}
        for argument, _, result, value in carried:
            own = 1 if value is argument else 0
            if result in dropped and argument.uses.get_length() > own:
                dropped.remove(result)
        if dropped and len(dropped) < len(op.results):  # An op without any used result is erased anyway.
            _without(op, dropped, rewriter)


def _carried(op: LoopOp) -> list[tuple[SSAValue, SSAValue, SSAValue, SSAValue]]:
    """Each carried value: block argument, initial value, result, and yielded value."""
    yielded = op.yielded(op.body)[int(op.condition is not None) :]
    return list(zip(op.carried, op.initial, op.finals, yielded, strict=False))


def _without(op: RegionOp, dropped: Container[SSAValue], rewriter: Rewriter) -> None:
    """Rebuild a branch or loop without some of its results."""
    kept = [position for position, result in enumerate(op.results) if result not in dropped]
    first = int(isinstance(op, LoopOp) and op.condition is not None)
    for region in op.regions:
        last = region.block.last_op
        assert isinstance(last, YieldOp)
        last.operands = [*last.values[:first], *(last.values[first + position] for position in kept)]
    regions = [op.detach_region(region) for region in list(op.regions)]
    new = _rebuilt(op, regions, kept)
    values = dict(zip(kept, new.results, strict=True))
    rewriter.replace(op, new, [values.get(position, new.results[0]) for position in range(len(op.results))])


def _rebuilt(op: RegionOp, regions: Sequence[Region], kept: Sequence[int]) -> RegionOp:
    """The branch or loop with only the results at these positions; its regions yield no others."""
    if isinstance(op, IfOp):
        return IfOp.of(op.condition, [op.results[position].type for position in kept], regions, op.location)
    assert isinstance(op, LoopOp)
    (body,) = regions
    count = len(op.initial)
    for position in reversed(range(count)):
        if position not in kept:
            body.block.erase_arg(body.block.args[1 + position])
    initial = [op.initial[position] for position in kept if position < count]
    backwards = [op.stacks[position - count].reversed for position in kept if position >= count]
    return LoopOp.of(_trips(op), initial, op.over, body, backwards, op.location)


class CarryUntransposed(Pattern):
    """Carry the operand of a transpose instead of its result, so that the transpose may cancel one in the next trip."""

    @rooted
    def match_and_rewrite(self, op: LoopOp, rewriter: Rewriter, /) -> None:
        for position, (argument, _, _, value) in enumerate(_carried(op)):
            transpose = value.owner
            if isinstance(transpose, TransposeOp) and is_inside(value, op) and _is_transposed(argument):
                _carry_untransposed(op, position, transpose, rewriter)
                return


def _carry_untransposed(op: LoopOp, position: int, transpose: TransposeOp, rewriter: Rewriter) -> None:
    """Carry the operand of a transpose between trips, and transpose it at the start of the body and behind the loop."""
    order, block = ints(transpose.permutation), op.body.block
    fresh, old = block.insert_arg(transpose.input.type, 1 + position), block.args[2 + position]
    again = TransposeOp.make(fresh, permutation=order, location=transpose.location)
    assert block.first_op is not None
    assert block.last_op is not None
    block.insert_op_before(again, block.first_op)
    old.replace_all_uses_with(again.result)
    block.erase_arg(old)
    block.last_op.operands[int(op.condition is not None) + position] = transpose.input
    emit, initial = rewriter.emit, list(op.initial)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    initial[position] = emit(TransposeOp, initial[position], permutation=inverse)
    backwards = [rows.reversed for rows in op.stacks]
    new = emit.insert(LoopOp.of(_trips(op), initial, op.over, op.detach_region(op.body), backwards, op.location))
    results: list[SSAValue] = list(new.results)
    results[position] = emit(TransposeOp, results[position], permutation=order)
    rewriter.replace(op, [], results)


def _trips(op: LoopOp) -> Trips:
    """The trip count of a loop."""
    return Trips(op.trip_count if op.size_of_trips is None else op.size_of_trips, op.condition)


def _is_transposed(value: SSAValue) -> bool:
    """Whether a transpose reads the value, which another one might cancel."""
    return any(isinstance(use.operation, TransposeOp) for use in value.uses)


class ReadRowsByNumber(Pattern):
    """Turn a gather or a slice by the loop index into a scan of the tensor's rows."""

    @rooted
    def match_and_rewrite(self, op: GatherOp | DynamicSliceOp, rewriter: Rewriter, /) -> None:
        loop, number = op.parent_op(), op.operands[1]
        if not isinstance(loop, LoopOp) or not _is_index(number, loop) or is_inside(op.input, loop):
            return
        source, trips = sizes_of(op.input), loop.size_of_trips
        axis = normalize_axis(integer(op.axis), len(source))
        if isinstance(op, DynamicSliceOp) and sizes_of(op.result)[axis] != 1:
            return
        if trips is None or not (trips == source[axis] or largest(trips) <= smallest(source[axis])):
            return
        emit = rewriter.emit_before(loop, op.location)
        rows = moved_axis(emit, op.input, axis, 0)
        if trips != source[axis]:
            sizes = sizes_of(rows)
            rows = emit(SliceOp, rows, starts=(0,) * len(sizes), ends=(trips, *sizes[1:]))
        row = loop.go_over(Rows(rows))
        rewriter.handle_operation_modification(loop)
        is_row = sizes_of(row) == sizes_of(op.result)
        rewriter.replace(op, [], [row] if is_row else [rewriter.emit(ReshapeOp, row, shape=sizes_of(op.result))])


class WriteRowsByNumber(Pattern):
    """Stack rows instead of writing each, by the loop index, to a carried tensor of as many rows as there are trips."""

    @rooted
    def match_and_rewrite(self, op: LoopOp, rewriter: Rewriter, /) -> None:
        if op.static_trips is None or op.condition is not None:
            return
        for position, (argument, _, result, value) in enumerate(_carried(op)):
            written = value.owner
            if isinstance(written, DynamicUpdateSliceOp) and written.input is argument and result.uses:
                axis = normalize_axis(integer(written.axis), len(sizes_of(argument)))
                whole = sizes_of(argument)[axis] == op.static_trips and sizes_of(written.update)[axis] == 1
                alone = argument.has_one_use() and value.has_one_use()
                if whole and alone and _is_index(written.start, op):
                    _stack(op, position, axis, written.update, rewriter)
                    return


def _stack(op: LoopOp, position: int, axis: int, update: SSAValue, rewriter: Rewriter) -> None:
    """Stack the updates of a carried tensor, which have one row along an axis."""
    last, sizes = op.body.block.last_op, sizes_of(update)
    assert isinstance(last, YieldOp)
    row = rewriter.emit_before(last, op.location)(ReshapeOp, update, shape=(*sizes[:axis], *sizes[axis + 1 :]))
    values = [*last.values, row]
    values[position] = op.carried[position]
    last.operands = values
    backwards = [*(rows.reversed for rows in op.stacks), False]
    new = LoopOp.of(_trips(op), op.initial, op.over, op.detach_region(op.body), backwards, op.location)
    emit = rewriter.emit
    emit.insert(new)
    results: list[SSAValue] = list(new.results[:-1])
    results[position] = moved_axis(emit, new.results[-1], 0, axis)
    rewriter.replace(op, [], results)


def _is_index(value: SSAValue, loop: LoopOp) -> bool:
    """Whether an integer of one element is the index of the trip, in any type that holds all indices."""
    while isinstance(inner := value.owner, ReshapeOp | CastOp):
        if isinstance(inner, CastOp) and not _holds_indices(inner, loop):
            return False
        value = inner.operands[0]
    return value is loop.index


def _holds_indices(cast: CastOp, loop: LoopOp) -> bool:
    """Whether a cast keeps the indices of all trips of a loop."""
    target, trips = element_of(cast.result), loop.size_of_trips
    return is_integer(target) and trips is not None and largest(trips) - 1 <= np.iinfo(numpy_dtype(target)).max


def inline(op: RegionOp, region: Region, arguments: Sequence[SSAValue], rewriter: Rewriter) -> None:
    """Inline one of the regions of an op, with `arguments` for its block arguments."""
    for argument, value in zip(region.block.args, arguments, strict=True):
        argument.replace_all_uses_with(value)
    yielded, block = op.yielded(region), op.parent_block()
    assert block is not None
    for inner in list(own_operations(region.block)):
        inner.detach()
        if isinstance(inner, YieldOp):
            inner.erase()
        else:
            block.insert_op_before(inner, op)
            rewriter.handle_operation_modification(inner)
    stacked = op.stacked if isinstance(op, LoopOp) else ()
    values = [
        rewriter.emit(ReshapeOp, value, shape=sizes_of(result)) if result in stacked else value
        for result, value in zip(op.results, yielded, strict=True)
    ]
    rewriter.replace(op, [], values)


@dataclass(frozen=True)
class SimplifyControlFlowPass(PatternPass):
    """
    Inline branches whose condition is known and loops of one trip, drop unused results and unchanged carried values,
    turn reads and writes by loop index into scans, and carry values in the layout in which trips compute them.
    """

    name = "simplify-control-flow"
    WALKS = (
        Walk(
            (
                InlineKnownBranch(),
                InlineSingleTrip(),
                ReadRowsByNumber(),
                WriteRowsByNumber(),
                CarryUntransposed(),
                DropUnusedResults(),
            ),
            repeated=True,
        ),
    )

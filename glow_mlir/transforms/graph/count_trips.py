"""`count-trips`: turn loops that compare a counter with a bound into loops with a number of trips."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_integer, numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.control_flow import YieldOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    GreaterOp,
    GreaterOrEqualOp,
    LessOp,
    LessOrEqualOp,
    MaxOp,
    MinOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import CastOp, NotOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Trips
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import element_of, has_one_element, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.traversal import is_inside
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size

LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL = "<", "<=", ">", ">="

COMPARISONS: Mapping[type[Operation], str] = {
    LessOp: LESS,
    LessOrEqualOp: LESS_OR_EQUAL,
    GreaterOp: GREATER,
    GreaterOrEqualOp: GREATER_OR_EQUAL,
}

SWAPPED: Mapping[str, str] = {
    LESS: GREATER,
    LESS_OR_EQUAL: GREATER_OR_EQUAL,
    GREATER: LESS,
    GREATER_OR_EQUAL: LESS_OR_EQUAL,
}
"""Comparison → the one that holds for the operands in the other order."""

HOLDS: Mapping[str, Callable[[int, int], bool]] = {
    LESS: operator.lt,
    LESS_OR_EQUAL: operator.le,
    GREATER: operator.gt,
    GREATER_OR_EQUAL: operator.ge,
}
"""Comparison → whether it holds for two numbers."""

NEGATED: Mapping[str, str] = {
    LESS: GREATER_OR_EQUAL,
    LESS_OR_EQUAL: GREATER,
    GREATER: LESS_OR_EQUAL,
    GREATER_OR_EQUAL: LESS,
}
"""Comparison → the one that holds where it does not."""


@dataclass(frozen=True)
class Counter:
    """
    A carried integer that grows by `step` in each trip, and the comparison with `bound` that decides on the next trip.

    `ahead` is 1 if the value of the next trip is compared, and 0 if that of the current trip is.
    """

    position: int
    initial: SSAValue
    step: int
    word: str
    bound: SSAValue
    ahead: int

    @property
    def limits(self) -> np.iinfo[np.integer]:
        """The range of its element type."""
        return np.iinfo(numpy_dtype(element_of(self.initial)))


class CountTrips(Pattern):
    """
    Count the trips of a loop that goes on while a counter is on one side of a bound.

    Trips are counted at compile time if start and bound are known, and otherwise in front of the loop if the counter
    grows or falls by 1. A loop whose counter would wrap around stays, and so does one whose rows are fewer than its
    trips might be.
    """

    @rooted
    def match_and_rewrite(self, op: LoopOp, rewriter: Rewriter, /) -> None:
        if op.condition is None or (counter := _counter(op, rewriter.storage)) is None:
            return
        counted = _Counted(op, counter, rewriter)
        trips = counted.trips()
        if trips is not None:
            counted.rewrite(trips)


def _counter(op: LoopOp, storage: Storage) -> Counter | None:
    """The counter that decides on the next trip of a loop, if there is one."""
    following, *carried = op.yielded(op.body)
    negated = False
    while isinstance(inner := following.owner, NotOp | ReshapeOp):
        negated ^= isinstance(inner, NotOp)
        following = inner.operands[0]
    comparison = following.owner
    if not isinstance(comparison, HighOp) or (word := COMPARISONS.get(type(comparison))) is None:
        return None
    word = NEGATED[word] if negated else word
    left, right = comparison.operands
    for value, bound, own in ((left, right, word), (right, left, SWAPPED[word])):
        bound = _unchanged(bound, op)
        if is_inside(bound, op) and storage.value_of(bound) is None:
            continue
        for position, (argument, initial, after) in enumerate(zip(op.carried, op.initial, carried, strict=False)):
            step = _step(argument, after, storage)
            if step and _behind_reshapes(value) in (argument, _behind_reshapes(after)):
                ahead = int(_behind_reshapes(value) is not argument)
                return Counter(position, initial, step, own, bound, ahead)
    return None


def _unchanged(value: SSAValue, op: LoopOp) -> SSAValue:
    """The value in front of a loop that is carried unchanged, or the value itself."""
    after = op.yielded(op.body)[1:]
    pairs = zip(op.carried, op.initial, after, strict=False)
    return next((initial for argument, initial, own in pairs if value is argument is own), value)


def _step(argument: SSAValue, after: SSAValue, storage: Storage) -> int | None:
    """The known number by which a carried integer grows in a trip; `None` if it is computed differently."""
    inner = _behind_reshapes(after).owner
    if not isinstance(inner, AddOp | SubOp) or not has_one_element(argument) or not _is_counted(element_of(argument)):
        return None
    left, right = map(_behind_reshapes, inner.operands)
    if isinstance(inner, AddOp) and right is argument:
        left, right = right, left
    known = storage.value_of(right) if left is argument else None
    if known is None:
        return None
    return int(known.item()) if isinstance(inner, AddOp) else -int(known.item())


def _is_counted(element: Attribute) -> bool:
    """Whether a type is one of integers that i64 can represent."""
    return is_integer(element) and np.iinfo(numpy_dtype(element)).max <= np.iinfo(np.int64).max


def _behind_reshapes(value: SSAValue) -> SSAValue:
    """The value behind reshapes."""
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.input
    return value


@dataclass
class _Counted:
    """The rewriting of one loop, with its counter."""

    op: LoopOp
    counter: Counter
    rewriter: Rewriter

    @cached_property
    def _start(self) -> int | None:
        """The value of the counter in the first trip, if it is known."""
        return self._known(self.counter.initial)

    def _known(self, value: SSAValue) -> int | None:
        """The only element of a value that is known."""
        found = self.rewriter.storage.value_of(value)
        return None if found is None else int(found.item())

    # ---- numbers of trips

    def trips(self) -> Size | SSAValue | None:
        """The number of trips without the condition; `None` if they are not counted. A number may be 0."""
        assert self.op.condition is not None
        runs, most = self._known(self.op.condition), self.op.size_of_trips
        if runs == 0:
            return None  # Such a loop is folded.
        found = self._known_trips()
        if found is not None and runs:
            if most is None and self.op.trip_count is None:
                return found
            if most is not None and found >= largest(most):
                return most
            if isinstance(most, int):
                return None if self._has_rows() else found
        if self._has_rows() or (most is not None and not isinstance(most, int)):
            return None
        return self._computed(found)

    def _has_rows(self) -> bool:
        """Whether a trip reads or gives rows, which are as many as the trips."""
        return bool(self.op.scanned or self.op.stacked)

    def _known_trips(self) -> int | None:
        """The number of trips, if the first one runs; `None` if it is not known or the counter wraps around."""
        counter, bound = self.counter, self._known(self.counter.bound)
        if self._start is None or bound is None:
            return None
        first = self._start + counter.ahead * counter.step
        if not counter.limits.min <= first <= counter.limits.max:
            return None
        if not HOLDS[counter.word](first, bound):
            return 1
        if (counter.step > 0) != (counter.word in (LESS, LESS_OR_EQUAL)):
            return None
        distance, step = abs(bound - first), abs(counter.step)
        more = -(-distance // step) if counter.word in (LESS, GREATER) else distance // step + 1
        last = self._start + (1 + more) * counter.step
        fits = counter.limits.min <= last <= counter.limits.max and 1 + more <= np.iinfo(np.int64).max
        return 1 + more if fits else None

    def _computed(self, known: int | None) -> SSAValue | None:
        """The number of trips, computed in front of the loop; `None` if the counter might wrap around."""
        emit = self.rewriter.emit
        if known is None and not self._is_countable():
            return None
        runs = self.op.condition
        assert runs is not None
        if known is not None:
            found = emit.splat(known, i64)
        else:
            if self._is_tested_in_front():
                return self._at_most(self._distance(self.counter.initial, emit), emit)
            left = self._distance(self._compared_first(emit), emit)
            found = emit(AddOp, emit(MaxOp, left, emit.splat(0, i64)), emit.splat(1, i64))
        if not self._known(runs):
            found = emit(WhereOp, emit(ReshapeOp, runs, shape=()), found, emit.splat(0, i64))
        return self._at_most(found, emit)

    def _compared_first(self, emit: Emitter) -> SSAValue:
        """The value that the first trip compares, which wraps around as the counter does."""
        initial, step = self.counter.initial, self.counter.step
        if not self.counter.ahead:
            return initial
        if self._start is not None and self.counter.limits.min <= self._start + step <= self.counter.limits.max:
            return emit.splat(self._start + step, initial)
        return emit(AddOp if step > 0 else SubOp, initial, emit.splat(1, initial))

    def _distance(self, first: SSAValue, emit: Emitter) -> SSAValue:
        """How far the bound is ahead of a value, as i64; negative if it is behind it."""
        start, bound = self._wide(first, emit), self._wide(self.counter.bound, emit)
        low, high = (start, bound) if self.counter.step > 0 else (bound, start)
        return high if self._known(low) == 0 else emit(SubOp, high, low)

    def _is_countable(self) -> bool:
        """Whether the number of trips is the distance of bound and start, which i64 can represent."""
        counter = self.counter
        strict = LESS if counter.step > 0 else GREATER
        is_narrow = numpy_dtype(element_of(counter.initial)).itemsize < 8
        return abs(counter.step) == 1 and counter.word == strict and (is_narrow or (self._start == 0 < counter.step))

    def _is_tested_in_front(self) -> bool:
        """Whether the condition of the first trip is the comparison of the start with the bound."""
        condition = self.op.condition
        inner = None if condition is None else _behind_reshapes(condition).owner
        if not self.counter.ahead or not isinstance(inner, HighOp) or type(inner) not in COMPARISONS:
            return False
        pair = [self.counter.initial, self.counter.bound]
        own = list(inner.operands)
        word = COMPARISONS[type(inner)]
        return (word, own) in ((self.counter.word, pair), (SWAPPED[self.counter.word], pair[::-1]))

    def _at_most(self, found: SSAValue, emit: Emitter) -> SSAValue:
        """The number of trips that is also limited by the loop's own one."""
        most = self.op.static_trips
        own = emit.splat(most, i64) if most is not None else self.op.trip_count
        return found if own is None else emit(MinOp, found, emit(ReshapeOp, own, shape=()))

    def _wide(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """A value of one element as a scalar i64."""
        known = self._known(value)
        if known is not None:
            return emit.splat(known, i64)
        wide = value if element_of(value) == i64 else emit(CastOp, value, to=i64)
        return wide if not sizes_of(wide) else emit(ReshapeOp, wide, shape=())

    # ---- the loop

    def rewrite(self, trips: Size | SSAValue) -> None:
        """Replace the loop by one with that number of trips, and its counter by a function of their index."""
        op, counter, emit = self.op, self.counter, self.rewriter.emit
        start = self._start if self._start is not None else self._wide(counter.initial, emit)
        final = op.finals[counter.position]
        total = self._total(trips, emit) if final.uses else None
        after = None if total is None else self._at(start, total, emit)
        self._replace_counter(start)
        last = op.body.block.last_op
        assert isinstance(last, YieldOp)
        last.operands = last.values[1:]
        backwards = [rows.reversed for rows in op.stacks]
        new = LoopOp.of(Trips(trips), op.initial, op.over, op.detach_region(op.body), backwards, op.location)
        emit.insert(new)
        results: list[SSAValue] = list(new.results)
        if after is not None:
            results[counter.position] = after
        self.rewriter.replace(op, [], results)

    def _replace_counter(self, start: int | SSAValue) -> None:
        """Compute the counter from the index of the trip."""
        block, argument = self.op.body.block, self.op.carried[self.counter.position]
        assert block.first_op is not None
        emit = self.rewriter.emit_before(block.first_op, self.op.location)
        value = self._at(start, self.op.index, emit)
        argument.replace_all_uses_with(value)

    def _at(self, start: int | SSAValue, index: SSAValue, emit: Emitter) -> SSAValue:
        """The counter after a number of trips, in the counter's type."""
        value, like = index, self.counter.initial
        if self.counter.step != 1:
            value = emit(MulOp, value, emit.splat(self.counter.step, i64))
        if start != 0:
            value = emit(AddOp, value, emit.splat(start, i64) if isinstance(start, int) else start)
        if element_of(like) != i64:
            value = emit(CastOp, value, to=element_of(like))
        return emit(ReshapeOp, value, shape=sizes_of(like)) if sizes_of(like) else value

    def _total(self, trips: Size | SSAValue, emit: Emitter) -> SSAValue | None:
        """The number of trips as a scalar that is not negative; `None` if it is a symbol."""
        if isinstance(trips, SSAValue):
            return emit(MaxOp, trips, emit.splat(0, i64))
        return emit(SplatOp, value=IntegerAttr(trips, i64), shape=()) if isinstance(trips, int) else None


@dataclass(frozen=True)
class CountTripsPass(PatternPass):
    """
    Turn loops that go on while a counter is below, or above, a bound into loops with a number of trips.

    Counters become functions of the index of the trip, so that reads by counter are scans, and such loops have
    gradients and are unrolled. `while (i < n) { …; i += 1; }` is what importers of StableHLO and of ONNX's Loop give.
    """

    name = "count-trips"
    WALKS = (Walk((CountTrips(),)),)

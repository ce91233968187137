"""
ONNX loops whose carried values change size between trips, or whose trip count is unbounded.

A carried value whose size changes is stored in a buffer with the capacity for its largest size, together with its
actual size; in each trip, a symbol is bound to that size. The capacity follows from the growth in a trip and the number
of trips. If these are unbounded, there is capacity for a limited number of trips: a call that needs more fails, and is
repeated with a larger capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, SSAValue

from glow_mlir.dialects.control_flow import verify_scalar
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, AndOp, LessOp, LessOrEqualOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.dialects.symbol_binding import SymbolBinding, mentioned
from glow_mlir.errors import OUT_OF_CAPACITY, InputValuesError, ModelError
from glow_mlir.frontends.builder.agreement import checked_size
from glow_mlir.frontends.builder.inputs import CAPACITY
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.builder.slices import cut, filled, scalar, zero_unless
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.structured_loops import own_inputs
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, SymbolicSize, symbols_of

MAX_ATTEMPTS = 16
"""The maximum number of trial imports of a body, to find out which sizes change, and how."""

ValueAxis = tuple[int, int]
"""A carried value, and one of its axes."""


def as_declared(node: Node, block: Block, yielded: Sequence[SSAValue], known: Sequence[Size] = ()) -> list[SSAValue]:
    """
    The values that a trip yields, with declared sizes in place of sizes that the body computes.

    A call fails if a size differs from the declared one. Sizes that depend on `known` ones only are kept, and so are
    those of carried values whose initial size differs from the declared one.
    """
    own = {op.bound for op in own_operations(block) if isinstance(op, SymbolBinding)} - set(symbols_of(known))
    found, carried = list(yielded), [None, *node.inputs[2:]]
    for position, declared in enumerate(node.subgraph("body").output):
        extents = [size.dim_value for size in declared.type.tensor_type.shape.dim]
        initial = carried[position] if position < len(carried) else None
        if len(extents) != rank_of(found[position]):
            continue
        for axis, extent in enumerate(extents):
            size = sizes_of(found[position])[axis]
            fits = extent > 0 and smallest(size) <= extent <= largest(size)
            is_kept = initial is not None and sizes_of(initial)[axis : axis + 1] != (extent,)
            if fits and not is_kept and own.intersection(symbols_of([size])):
                with node.builder.inside(block):
                    found[position] = checked_size(node, found[position], axis, extent)
    return found


def check_rows(node: Node, block: Block, rows: Sequence[SSAValue]) -> None:
    """Raise `UnsupportedError` for rows whose sizes the body computes in each trip."""
    bound = {op.bound for op in own_operations(block) if isinstance(op, SymbolBinding)}
    for position, row in enumerate(rows):
        if changing := bound.intersection(mentioned([row], [])):
            size = min(changing).name
            raise node.unsupported(f"rows of result {position} have sizes that depend on the iteration, as {size}")


@dataclass
class Changing:
    """Axes of carried values that share a size, which changes between trips."""

    axes: list[ValueAxis]
    first: Size
    """The size before the loop."""
    most: int
    """The largest size at the start of a trip."""
    least: int
    capacity: int
    """The largest size at the end of a trip."""
    step: int | None = None
    """The growth in each trip, if it is constant."""


@dataclass
class Trial:
    """A trial import of the body."""

    body: Body
    sizes: list[Size]
    """The symbols of the changing sizes at the start of a trip."""
    yielded: list[SSAValue]


@dataclass
class SizedLoop:
    """The import of a Loop whose sizes change, or whose trips are unbounded."""

    node: Node
    initial: Sequence[SSAValue]
    count: Size | SSAValue | None
    """The trip count, if there is one."""
    condition: bool | SSAValue
    changing: list[Changing] = field(default_factory=list[Changing])
    most_trips: int = 0
    is_limited: bool = False
    """Whether there is capacity for a limited number of trips only."""
    _is_exact: bool = False
    """Whether the loop always makes `count` trips."""

    def run(self) -> list[SSAValue] | None:
        """The results; `None` if a node of the body is not supported."""
        rows = len(self.node.subgraph("body").output) - 1 - len(self.initial)
        if not isinstance(self.count, SSAValue | None):
            self.most_trips = largest(self.count)
        elif rows:
            self._limit()
        for _ in range(MAX_ATTEMPTS):
            trial = self._tried()
            if trial is None:
                return None
            if self._is_settled(trial):
                check_rows(self.node, trial.body.block, trial.yielded[1 + len(self.initial) :])
                return self._emitted(trial)
        raise self.node.unsupported("sizes of its carried values change irregularly")

    def _limit(self) -> None:
        """Limit the loop to the trips it has capacity for; raises `InputValuesError` if no capacity was given."""
        if not self.is_limited:
            self.most_trips = self._capacity()
            self.is_limited = True

    @property
    def _label(self) -> str:
        """The label of the loop's capacity."""
        return next(filter(None, self.node.results), self.node.kind) + CAPACITY

    def _capacity(self) -> int:
        if (found := self.node.builder.trip_capacities.get(self._label)) is None:
            reason = "Loop: the size of its results is unbounded"
            raise InputValuesError(reason, (), node=self.node.name, trip_capacities=(self._label,))
        return found

    # ---- The body

    def _tried(self) -> Trial | None:
        """Import the body, with the changing sizes known so far."""
        node = self.node
        counts = [scalar(node, item.first) for item in self.changing]
        carried = list(self.initial)
        for item in self.changing:
            for position, axis in item.axes:
                carried[position] = filled(node, carried[position], axis, item.capacity)
        goes_on = [node.constant(np.array(True))] if self.is_limited else []
        body = Body(node, [*carried, *counts, *goes_on], ())
        values = body.carried
        with node.builder.inside(body.block):
            own = own_inputs(node, body.block.args[0])
            sizes = [
                node.bind_symbol(values[len(carried) + number], item.most, min(item.least, item.most))
                for number, item in enumerate(self.changing)
            ]
            views = values[: len(carried)]
            for size, item in zip(sizes, self.changing, strict=True):
                for position, axis in item.axes:
                    views[position] = cut(node, views[position], {axis: (0, size)})
        yielded = node.region("body", body.block, [*own, *views])
        if yielded is None:
            return None
        return Trial(body, sizes, as_declared(node, body.block, yielded, sizes))

    def _is_settled(self, trial: Trial) -> bool:
        """Whether a trial yields the expected sizes; otherwise updates `changing`."""
        known = {index: number for number, item in enumerate(self.changing) for index in item.axes}
        is_settled, following = True, trial.yielded[1 : 1 + len(self.initial)]
        for position, (before, after) in enumerate(zip(self.initial, following, strict=True)):
            self._check_alike(position, before, after)
            for axis, (first, size) in enumerate(zip(sizes_of(before), sizes_of(after), strict=True)):
                if (position, axis) not in known and first != size:
                    self._take_down((position, axis), first, size)
                    is_settled = False
        if not is_settled:
            return False
        for number, item in enumerate(list(self.changing)):
            found = {index: sizes_of(following[index[0]])[index[1]] for index in item.axes}
            if len(set(found.values())) > 1:
                self._split(item, found)
                return False
            is_settled &= self._fits(item, trial.sizes[number], next(iter(found.values())))
        return is_settled

    def _check_alike(self, position: int, before: SSAValue, after: SSAValue) -> None:
        """Raise an error for a value whose element type or rank changes between trips."""
        types = [element_of(value) for value in (before, after)]
        if types[0] != types[1]:
            reason = f"Loop: carried value {position} is of {types[0]}, and of {types[1]} after the first iteration"
            raise ModelError(reason, node=self.node.name, hint="cast it in the body")
        ranks = [rank_of(value) for value in (before, after)]
        if ranks[0] != ranks[1]:
            raise self.node.unsupported(f"carried value {position} has {ranks[0]} axes, then {ranks[1]}")

    def _take_down(self, index: ValueAxis, first: Size, size: Size) -> None:
        """Record an axis whose size changes; axes with the same initial size are assumed to change together."""
        for item in self.changing:
            if item.first == first:
                item.axes.append(index)
                return
        least = min(smallest(first), smallest(size))
        self.changing.append(Changing([index], first, largest(first), least, largest(first)))

    def _split(self, item: Changing, found: dict[ValueAxis, Size]) -> None:
        """Split axes with the same initial size that change differently."""
        self.changing.remove(item)
        for size in dict.fromkeys(found.values()):
            axes = [index for index, own in found.items() if own == size]
            self.changing.append(Changing(axes, item.first, largest(item.first), 0, largest(item.first)))

    def _fits(self, item: Changing, before: Size, after: Size) -> bool:
        """Whether the capacity suffices for the size `after` a trip that starts with `before`; else increases it."""
        wanted, was_limited = (item.most, item.least, item.capacity), self.is_limited
        step = after - before
        item.step = step if isinstance(step, int) else None
        if smallest(after) < item.least:
            item.least = max(0, smallest(after))
        if largest(after) > largest(item.first):
            if item.step is None or not self.most_trips:
                self._limit()
            more = (self.most_trips - 1) * (1 if item.step is None else item.step)
            item.most = max(item.most, largest(item.first) + more)
        item.capacity = max(item.most, largest(after) if item.most == wanted[0] else 0)
        return (item.most, item.least, item.capacity) == wanted and self.is_limited == was_limited

    # ---- The loop

    def _emitted(self, trial: Trial) -> list[SSAValue]:
        """Emit the loop; its results."""
        node, body, kept = self.node, trial.body, len(self.initial)
        rows = [Rows(row) for row in trial.yielded[1 + kept :]]
        condition, following, again = self._conditions(trial)
        carried = trial.yielded[1 : 1 + kept]
        with node.builder.inside(body.block):
            counts = [scalar(node, sizes_of(carried[item.axes[0][0]])[item.axes[0][1]]) for item in self.changing]
            for item in self.changing:
                for position, axis in item.axes:
                    carried[position] = filled(node, carried[position], axis, item.capacity)
        is_counted = bool(rows) and condition is not None
        if self.is_limited and condition is not None:
            body.initial = [*body.initial[:-1], condition]
        extra = [body.carry_number(node)] if is_counted else []
        goes_on = [again] if self.is_limited else []
        is_most = self.is_limited or (condition is not None and isinstance(self.count, SymbolicSize))
        trips = Trips(self.most_trips if is_most else self.count, condition)
        found = list(body.emit(trips, [*carried, *counts, *goes_on, *extra], rows, following))
        return self._results(found, kept, len(goes_on), is_counted)

    def _conditions(self, trial: Trial) -> tuple[SSAValue | None, SSAValue | None, SSAValue]:
        """
        The conditions of the first and of each following trip, and whether the loop wants to go on.

        Both conditions are `None` if the loop has an exact trip count. The last value does not take the capacity into
        account.
        """
        node, body, yielded = self.node, trial.body, trial.yielded[0]
        verify_scalar(yielded, i1, "the condition")
        known = node.fold(yielded)
        with node.builder.inside(body.block):
            again = node.emit(ReshapeOp, yielded, shape=())
        first = node.constant(np.array(self.condition)) if isinstance(self.condition, bool) else self.condition
        first = node.emit(ReshapeOp, first, shape=())
        is_endless = isinstance(self.condition, bool) and known is not None and bool(known.item())
        if is_endless and self.count is None:
            raise ModelError("Loop never terminates", node=node.name, hint="give it a trip count or a condition")
        self._is_exact = is_endless and not self.is_limited
        if self._is_exact:
            return None, None, again
        if self.count is not None and (self.is_limited or not isinstance(self.count, int)):
            count = node.emit(ReshapeOp, node.input(0), shape=())
            first = node.emit(AndOp, first, node.emit(LessOp, scalar(node, 0), count))
            with node.builder.inside(body.block):
                again = node.emit(AndOp, again, node.emit(LessOp, body.next_number(node), count))
        following = again
        with node.builder.inside(body.block):
            for size, item in zip(self._sizes_behind(trial), self.changing, strict=True):
                if largest(size) > item.most and item.step is None:
                    has_capacity = node.emit(LessOrEqualOp, scalar(node, size), scalar(node, item.most))
                    following = node.emit(AndOp, following, has_capacity)
        return first, following, again

    def _sizes_behind(self, trial: Trial) -> list[Size]:
        """The changing sizes after a trip."""
        following = trial.yielded[1:]
        return [sizes_of(following[item.axes[0][0]])[item.axes[0][1]] for item in self.changing]

    def _results(self, found: list[SSAValue], kept: int, limited: int, is_counted: bool) -> list[SSAValue]:
        """The results, cut to their actual sizes; a call fails if the capacity was insufficient."""
        node = self.node
        counts, rest = found[kept : kept + len(self.changing)], found[kept + len(self.changing) :]
        check = zero_unless(node, rest[0], f"{OUT_OF_CAPACITY} '{self._label}'") if limited else None
        finals = [value if check is None else self._checked(value, check) for value in found[:kept]]
        for item, count in zip(self.changing, counts, strict=True):
            size = self._final(item, count, check)
            for position, axis in item.axes:
                finals[position] = cut(node, finals[position], {axis: (0, size)})
        stacked = rest[limited + is_counted :]
        if is_counted:
            number = rest[limited] if check is None else node.emit(AddOp, rest[limited], check)
            size = node.bind_symbol(number, self.most_trips)
            stacked = [cut(node, value, {0: (0, size)}) for value in stacked]
        return [*finals, *stacked]

    def _final(self, item: Changing, count: SSAValue, check: SSAValue | None) -> Size:
        """A size after the last trip."""
        if self._is_exact and item.step is not None and not isinstance(self.count, SSAValue | None):
            return self.count * item.step + item.first
        number = count if check is None else self.node.emit(AddOp, count, check)
        return self.node.bind_symbol(number, item.capacity, item.least, result=item.axes[0][0])

    def _checked(self, value: SSAValue, check: SSAValue) -> SSAValue:
        """Make a value depend on the check, so that using it fails the call if the check fails."""
        node = self.node
        return node.emit(GatherOp, node.emit(ReshapeOp, value, shape=(1, *sizes_of(value))), check, axis=0)

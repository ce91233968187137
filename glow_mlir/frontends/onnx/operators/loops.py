"""ONNX's loops: Loop, and Scan over the rows of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.control_flow import verify_scalar
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AndOp, LessOp, SubOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.shapes import element_of, largest_shape, normalize_axis, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.agreement import is_of_data, with_size
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.builder.slices import cut, iota
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.control_flow import check_number
from glow_mlir.frontends.onnx.operators.sized_loops import SizedLoop, as_declared, check_rows
from glow_mlir.frontends.onnx.operators.structured_loops import carries_structures, own_inputs, structured_loop
from glow_mlir.frontends.onnx.values import Value, takes_values
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size, SymbolicSize

Results = list[SSAValue | None]
"""The results of a node; `None` for unused ones."""

MAX_UNROLLED = 4096
"""The maximum number of nodes of an unrolled loop."""

CHANGING: Results = []
"""The result of importing a loop as a region if it needs buffers because sizes change."""


class ComputedConditionError(UnsupportedError):
    """A loop cannot be unrolled, because its condition is computed at run time."""


ENDLESS = 1 << 62
"""From here on, a trip count is no bound: exporters of `while` loops use the largest integer."""


def _check_carried(node: Node, position: int, initial: SSAValue, following: SSAValue) -> None:
    """Raise an error for a carried value whose type changes between trips."""
    before, after = element_of(initial), element_of(following)
    if before != after:
        reason = f"{node.kind}: carried value {position} is of {before}, and of {after} after the first iteration"
        raise ModelError(reason, node=node.name, hint="cast it in the body")
    if sizes_of(initial) != sizes_of(following):
        shapes = f"{sizes_of(initial)}, and {sizes_of(following)} after the first iteration"
        raise node.unsupported(f"carried value {position} has the shape {shapes}, so sizes depend on the iteration")


def _empty(node: Node, row: SSAValue) -> SSAValue:
    """The stacked rows of no trips."""
    none = node.constant(np.empty((0, *largest_shape(row)), numpy_dtype(element_of(row))))
    return cut(node, none, {axis: (0, size) for axis, size in enumerate(sizes_of(row), 1)})


# ---- Loop


@onnx_operator("Loop")
@takes_values
def loop(node: Node) -> Results | list[Value] | None:
    """
    A loop over a number of trips, or while a condition holds, or both.

    If shapes change between trips or depend on the trip number, the loop is unrolled, or uses buffers if it is long.
    """
    return structured_loop(node) if carries_structures(node) else LoopImport(node).run()


class LoopImport:
    """The import of one Loop."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.body = node.subgraph("body")
        self.initial = [node.input(position) for position in range(2, len(node.inputs))]
        check_number(node, 2 + len(self.initial), len(self.body.input), "its body takes")
        self.rows = len(self.body.output) - 1 - len(self.initial)
        """The number of results that stack a row for each trip."""
        if self.rows < 0:
            check_number(node, 1 + len(self.initial), len(self.body.output), "its body gives")
        self.count = self._trip_count()
        self.condition = self._condition()

    def _trip_count(self) -> Size | SSAValue | None:
        """The trip count: a constant, a symbolic size, a computed value, or `None` if there is no bound."""
        value = self.node.optional(0)
        if value is None:
            return None
        verify_scalar(value, i64, "the number of trips")
        known_trips = self.node.symbolic_value(value)
        if known_trips is not None and isinstance(size := known_trips.item(), SymbolicSize) and size.least >= 0:
            return size
        return self._known_count() if self.rows else self._counted(self.node.known(0))

    def _known_count(self) -> int | SSAValue | None:
        """The trip count if result sizes depend on it; raises `InputValuesError` if it is the value of an input."""
        known_trips = self.node.sizes_unless_computed(self.node.input(0), "the trip count")
        return self._counted(None if known_trips is None else np.array(known_trips))

    def _counted(self, known: np.ndarray | None) -> int | SSAValue | None:
        """The trip count: the operand if `known` is `None`; `None` if it is no bound."""
        if known is None:
            return self.node.input(0)
        return None if known.item() >= ENDLESS else int(known.item())

    def _condition(self) -> bool | SSAValue:
        """The initial condition: a constant, or a computed value."""
        value = self.node.optional(1)
        if value is None:
            return True
        verify_scalar(value, i1, "the condition")
        known = self.node.known(1)
        return value if known is None else bool(known.item())

    def run(self) -> Results | None:
        """The results; `None` if a node of the body is not supported."""
        if self.condition is False or (isinstance(self.count, int) and self.count <= 0):
            return self._without_trips()
        problems = self.node.builder.problems
        mark = problems.mark()
        results = self._region()
        if results is None and not self._is_small():
            problems.forget_since(mark)
            with self.node.builder.computing_in_loops():
                results = self._region()
        is_changing = results is CHANGING
        if is_changing and isinstance(self.count, SSAValue):
            self.count = self._known_count()
        if isinstance(self.count, int) and self._is_small():
            if results is not None and not is_changing:
                return results
            problems.forget_since(mark)
            try:
                return self._unrolled(self.count) if self.count > 0 else self._without_trips()
            except ComputedConditionError:
                problems.forget_since(mark)
                is_changing = True
        if not is_changing:
            return results
        with self.node.builder.computing_in_loops():
            found = SizedLoop(self.node, self.initial, self.count, self.condition).run()
        return None if found is None else list(found)

    def _is_small(self) -> bool:
        """Whether the loop is small enough to unroll."""
        return isinstance(self.count, int) and self.count * len(self.body.node) <= MAX_UNROLLED

    def _trip(self, body: Body) -> list[SSAValue] | None:
        """Import the body; the yielded values are the next condition, carried values and rows."""
        with self.node.builder.inside(body.block):
            own = own_inputs(self.node, body.block.args[0])
        yielded = self.node.region("body", body.block, [*own, *body.carried])
        return None if yielded is None else as_declared(self.node, body.block, yielded)

    def _without_trips(self) -> Results | None:
        """The results of no trips: the initial values, and no rows. The body determines the types of rows."""
        if not self.rows:
            return list(self.initial)
        body = Body(self.node, self.initial, ())
        yielded = self._trip(body)
        if yielded is None:
            return None
        check_rows(self.node, body.block, self._stacked(yielded))
        return [*self.initial, *(_empty(self.node, row) for row in self._stacked(yielded))]

    def _stacked(self, yielded: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return yielded[1 + len(self.initial) :]

    def _region(self) -> Results | None:
        """The results of a loop with constant sizes; `CHANGING` if sizes change, or the rows are unbounded."""
        body = Body(self.node, self.initial, ())
        yielded = self._trip(body)
        if yielded is None:
            return None
        check_rows(self.node, body.block, self._stacked(yielded))
        following = yielded[1 : 1 + len(self.initial)]
        for position, (before, after) in enumerate(zip(self.initial, following, strict=True)):
            if sizes_of(before) != sizes_of(after):
                return CHANGING
            _check_carried(self.node, position, before, after)
        return self._looped(body, yielded)

    def _looped(self, body: Body, yielded: list[SSAValue]) -> Results:
        """The results of a loop with this body; `CHANGING` if the number of rows is unbounded."""
        following = yielded[1 : 1 + len(self.initial)]
        goes_on = self.node.fold(yielded[0])
        count, condition, next_condition = self.count, None, None
        if goes_on is not None and not goes_on.item() and isinstance(self.condition, bool):
            if isinstance(count, int | None):
                count, goes_on = 1, np.True_
        if goes_on is None or not goes_on.item() or not isinstance(self.condition, bool):
            condition, next_condition = self._conditions(body, yielded[0])
        if count is None and condition is None:
            raise ModelError("Loop never terminates", node=self.node.name, hint="give it a trip count or a condition")
        rows = [Rows(row) for row in self._stacked(yielded)]
        if rows and isinstance(count, SSAValue | None):
            return CHANGING
        if condition is not None and next_condition is not None and rows:
            return self._some_rows(body, (condition, next_condition), following, rows)
        if condition is not None and isinstance(count, SymbolicSize):
            count = self.node.input(0)
        return list(body.emit(Trips(count, condition), following, rows, next_condition))

    def _some_rows(
        self, body: Body, conditions: tuple[SSAValue, SSAValue], following: list[SSAValue], rows: Sequence[Rows]
    ) -> Results:
        """The results of a loop that may end early: it stacks one row for each trip made."""
        assert not isinstance(self.count, SSAValue | None)
        most = largest(self.count)
        condition, again = self._within(body, *conditions) if isinstance(self.count, SymbolicSize) else conditions
        number = body.carry_number(self.node)
        results = body.emit(Trips(most, condition), [*following, number], rows, again)
        size = self.node.bind_symbol(results[len(following)], most)
        stacked = results[len(following) + 1 :]
        return [*results[: len(following)], *(cut(self.node, value, {0: (0, size)}) for value in stacked)]

    def _within(self, body: Body, condition: SSAValue, following: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Both conditions, combined with the bound given by a symbolic trip count."""
        node = self.node
        count = node.emit(ReshapeOp, node.input(0), shape=())
        allowed = node.emit(LessOp, node.constant(np.array(0, np.int64)), count)
        with node.builder.inside(body.block):
            number = body.next_number(node)
            again = node.emit(AndOp, following, node.emit(LessOp, number, count))
        return node.emit(AndOp, condition, allowed), again

    def _conditions(self, body: Body, yielded: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The conditions of the first and of the next trips, with the same shape."""
        verify_scalar(yielded, i1, "the condition")
        if isinstance(self.condition, bool):
            return self.node.constant(np.full(shape_of(yielded), self.condition)), yielded
        if shape_of(yielded) != shape_of(self.condition):
            with self.node.builder.inside(body.block):
                yielded = self.node.emit(ReshapeOp, yielded, shape=shape_of(self.condition))
        return self.condition, yielded

    def _unrolled(self, count: int) -> Results | None:
        """Unroll the loop."""
        if self.rows and not isinstance(self.condition, bool):
            self.node.array(1, "the condition")
        if not isinstance(self.condition, bool):
            raise ComputedConditionError("Loop: sizes depend on the iteration and the condition on an input")
        carried, rows = list(self.initial), list[Sequence[SSAValue]]()
        for trip in range(count):
            own = own_inputs(self.node, self.node.constant(np.array(trip, np.int64)))
            found = self.node.inline("body", [*own, *carried])
            if found is None:
                return None
            known = self.node.fold(found[0])
            if known is None:
                raise ComputedConditionError("Loop: sizes depend on the iteration and the condition on results")
            carried = found[1 : 1 + len(carried)]
            rows.append(self._stacked(found))
            if not known.item():
                break
        return [*carried, *(self._joined(column) for column in zip(*rows, strict=True))]

    def _joined(self, rows: Sequence[SSAValue]) -> SSAValue:
        """Stack rows."""
        if any(row.type != rows[0].type for row in rows):
            raise ModelError("Loop: the rows of a result have different shapes", node=self.node.name)
        return self.node.emit(
            ConcatOp, [self.node.emit(ReshapeOp, row, shape=(1, *sizes_of(row))) for row in rows], axis=0
        )


# ---- Scan


@onnx_operator("Scan", since=9)
def scan(node: Node) -> Results | None:
    """A loop over the rows of tensors along any axes, forward or backward."""
    states, tensors = _operands(node, 0)
    axes = node.ints("scan_input_axes", [0] * len(tensors))
    check_number(node, len(tensors), len(axes), "scan_input_axes has")
    fronted = [moved_axis(node, value, normalize_axis(axis, rank_of(value)), 0) for value, axis in zip(tensors, axes)]
    rows = [Rows(*pair) for pair in zip(fronted, _directions(node, "scan_input_directions", len(tensors)))]
    results = _scan(node, states, rows, "scan_output_directions")
    if results is None:
        return None
    stacked = results[len(states) :]
    axes = node.ints("scan_output_axes", [0] * len(stacked))
    check_number(node, len(stacked), len(axes), "scan_output_axes has")
    placed = [moved_axis(node, value, 0, normalize_axis(axis, rank_of(value))) for value, axis in zip(stacked, axes)]
    return [*results[: len(states)], *placed]


@onnx_operator("Scan")
def scan_of_batch(node: Node) -> Results | None:
    """Scan of opset 8: axis 0 of all operands is a batch, whose elements are scanned along axis 1."""
    if node.optional(0) is not None:
        lengths, steps = node.array(0, "the lengths of the sequences"), _operands(node, 1)[1]
        if any(set(lengths.reshape(-1).tolist()) != {shape_of(value)[1]} for value in steps):
            raise node.unsupported("sequences of different lengths are not supported")
    states, tensors = _operands(node, 1)
    batches = list(dict.fromkeys(sizes_of(value)[0] for value in (*states, *tensors)))
    if len(batches) != 1:
        raise ModelError(f"Scan: operands have the batches {batches}", node=node.name)
    body = Body(node, (), [Rows(value) for value in (*states, *tensors)])
    with node.builder.inside(body.block):
        directions = _directions(node, "directions", len(tensors))
        rows = [Rows(*pair) for pair in zip(body.rows[len(states) :], directions)]
        results = _scan(node, body.rows[: len(states)], rows, "")
    if results is None:
        return None
    (batch,) = batches
    if batch == 0:
        return [_empty(node, value) for value in results]
    return list(body.emit(Trips(batch), (), [Rows(value) for value in results]))


def _operands(node: Node, first: int) -> tuple[list[SSAValue], list[SSAValue]]:
    """The initial states, and the tensors that are scanned, from operand `first` on."""
    operands = [node.input(position) for position in range(first, len(node.inputs))]
    count = node.int("num_scan_inputs")
    if not 0 < count <= len(operands):
        raise ModelError(f"Scan: {count} of {len(operands)} operands are scanned", node=node.name)
    return operands[:-count], operands[-count:]


def _directions(node: Node, name: str, count: int) -> list[bool]:
    """Whether each tensor is reversed."""
    directions = node.ints(name, [0] * count) if name else [0] * count
    check_number(node, count, len(directions), f"{name} has")
    if wrong := [direction for direction in directions if direction not in (0, 1)]:
        raise ModelError(f"{name} of Scan has {wrong[0]}", node=node.name, hint="0 is forward, 1 is backward")
    return [bool(direction) for direction in directions]


def _scan(node: Node, states: Sequence[SSAValue], scanned: Sequence[Rows], directions: str) -> list[SSAValue] | None:
    """The final states, then the stacked results; `directions` is the name of the attribute for result directions."""
    lengths = list(dict.fromkeys(sizes_of(rows.value)[0] for rows in scanned if rank_of(rows.value)))
    if not lengths or (len(lengths) > 1 and not any(is_of_data(node, length) for length in lengths)):
        raise ModelError(f"Scan: it goes over tensors of {lengths} rows", node=node.name)
    length = next((length for length in lengths if isinstance(length, int)), lengths[0])
    scanned = [Rows(with_size(node, rows.value, 0, length), rows.reversed) for rows in scanned]
    if isinstance(length, SymbolicSize):
        scanned = [Rows(_turned(node, rows)) for rows in scanned]
    graph = node.subgraph("body")
    check_number(node, len(states) + len(scanned), len(graph.input), "its body takes")
    body = Body(node, states, scanned)
    yielded = node.region("body", body.block, [*body.carried, *body.rows])
    if yielded is None:
        return None
    if len(yielded) < len(states):
        check_number(node, len(states), len(yielded), "its body gives")
    following = [_as_before(node, body, *pair) for pair in zip(states, yielded)]
    rows = yielded[len(states) :]
    check_rows(node, body.block, rows)
    for position, (before, after) in enumerate(zip(states, following, strict=True)):
        _check_carried(node, position, before, after)
    if length == 0:
        return [*states, *(_empty(node, row) for row in rows)]
    backwards = _directions(node, directions, len(rows))
    if not isinstance(length, SymbolicSize):
        return body.emit(Trips(length), following, [Rows(*pair) for pair in zip(rows, backwards)])
    results = body.emit(Trips(length), following, [Rows(row) for row in rows])
    stacked = zip(results[len(states) :], backwards)
    return [*results[: len(states)], *(_turned(node, Rows(*pair)) for pair in stacked)]


def _as_before(node: Node, body: Body, before: SSAValue, after: SSAValue) -> SSAValue:
    """The state after an iteration, with its initial size if it depends on data; a call with another size fails."""
    if rank_of(before) == rank_of(after):
        for axis, size in enumerate(sizes_of(before)):
            if is_of_data(node, sizes_of(after)[axis]):
                with node.builder.inside(body.block):
                    after = with_size(node, after, axis, size)
    return after


def _turned(node: Node, rows: Rows) -> SSAValue:
    """The rows of a tensor in the order of iteration."""
    if not rows.reversed:
        return rows.value
    count = sizes_of(rows.value)[0]
    last = node.emit(ShapeOp, sizes=(count - 1,))
    return node.emit(GatherOp, rows.value, node.emit(SubOp, last, iota(node, count)), axis=0)

"""ONNX's loops: Loop, and Scan over the rows of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Block, Region, SSAValue

from glow_mlir.dialects.control_flow import verify_scalar
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.control_flow import INDEX, YieldOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows, Trips
from glow_mlir.dialects.shapes import element_of, normalize_axis, shape_of, tensor
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.control_flow import check_number
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator

Results = list[SSAValue | None]
"""What a node gives, `None` for what nobody asks for."""

MOST_UNROLLED = 4096
"""Nodes at most that a loop becomes where each trip has shapes of its own."""

ENDLESS = 1 << 62
"""From here on, a number of trips is no bound: writers of `while` loops give the largest there is."""


@dataclass
class Body:
    """
    The body of a loop as a region: what a trip takes is there, what it yields is found by `run`.

    `block` takes the number of the trip, then what is carried, then rows.
    """

    node: Node
    initial: Sequence[SSAValue]
    scanned: Sequence[Rows]

    def __post_init__(self) -> None:
        rows = [tensor(shape_of(rows.value)[1:], element_of(rows.value)) for rows in self.scanned]
        self.block = Block(arg_types=[INDEX, *(value.type for value in self.initial), *rows])

    @property
    def carried(self) -> list[SSAValue]:
        """What a trip takes from the one before."""
        return list(self.block.args[1 : 1 + len(self.initial)])

    @property
    def rows(self) -> list[SSAValue]:
        """What a trip takes of the tensors that the loop goes over."""
        return list(self.block.args[1 + len(self.initial) :])

    def emit(
        self,
        trips: Trips,
        following: Sequence[SSAValue],
        stacked: Sequence[Rows],
        condition: SSAValue | None = None,
    ) -> list[SSAValue]:
        """
        The results of the loop whose trips carry `following` on, and give rows to `stacked`.
        """
        yielded = [*([] if condition is None else [condition]), *following, *(rows.value for rows in stacked)]
        self.block.add_op(YieldOp.of(yielded, self.node.location))
        backwards = [rows.reversed for rows in stacked]
        location = self.node.location
        loop = LoopOp.of(trips, self.initial, self.scanned, Region(self.block), backwards, location)
        return list(self.node.insert(loop).results)


def _check_carried(node: Node, position: int, initial: SSAValue, following: SSAValue) -> None:
    """Raise for a value whose type changes from trip to trip."""
    before, after = element_of(initial), element_of(following)
    if before != after:
        reason = f"{node.kind}: carried value {position} is of {before}, and of {after} behind the first trip"
        raise ModelError(reason, node=node.name, hint="cast it in the body")
    if shape_of(initial) != shape_of(following):
        shapes = f"{shape_of(initial)}, and {shape_of(following)} behind the first trip"
        raise node.unsupported(f"carried value {position} has the shape {shapes}, so that sizes depend on the trip")


def _empty(node: Node, row: SSAValue) -> SSAValue:
    """What no trip gives: no rows."""
    return node.constant(np.empty((0, *shape_of(row)), numpy_dtype(element_of(row))))


# ---- Loop


@onnx_operator("Loop")
def loop(node: Node) -> Results | None:
    """
    A loop over a number of trips, while a condition holds, or both.

    Where shapes change from trip to trip, or are computed from their number, each trip becomes nodes of its own.
    """
    return LoopImport(node).run()


class LoopImport:
    """The import of one Loop."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.body = node.subgraph("body")
        self.initial = [node.input(position) for position in range(2, len(node.inputs))]
        check_number(node, 2 + len(self.initial), len(self.body.input), "its body takes")
        self.rows = len(self.body.output) - 1 - len(self.initial)
        """How many results have a row of each trip."""
        if self.rows < 0:
            check_number(node, 1 + len(self.initial), len(self.body.output), "its body gives")
        self.count = self._trip_count()
        self.condition = self._condition()

    def _trip_count(self) -> int | SSAValue | None:
        """The number of trips, where it is one, is computed, or there is none."""
        value = self.node.optional(0)
        if value is None:
            return None
        verify_scalar(value, i64, "the number of trips")
        known = self.node.array(0, "the trip count") if self.rows else self.node.known(0)
        if known is None:
            return value
        return None if known.item() >= ENDLESS else int(known.item())

    def _condition(self) -> bool | SSAValue:
        """Whether there is a first trip, as far as that does not depend on the number of trips."""
        value = self.node.optional(1)
        if value is None:
            return True
        verify_scalar(value, i1, "the condition")
        known = self.node.array(1, "the condition") if self.rows else self.node.known(1)
        return value if known is None else bool(known.item())

    def run(self) -> Results | None:
        """The results; `None` where a node inside is not supported."""
        if self.condition is False or (isinstance(self.count, int) and self.count <= 0):
            return self._without_trips()
        if isinstance(self.count, int) and self.count * len(self.body.node) <= MOST_UNROLLED:
            problems = self.node.graph.problems()
            results = self._region(may_refuse=False)
            if results is None:
                self.node.graph.forget_problems(problems)
                results = self._unrolled(self.count)
            return results
        return self._region(may_refuse=True)

    def _trip(self, body: Body) -> list[SSAValue] | None:
        """What a trip yields: the next condition, what it carries on, rows."""
        with self.node.graph.inside(body.block):
            goes_on = self.node.constant(np.ones(self._condition_shape(), np.bool_))
        return self.node.region("body", body.block, [body.block.args[0], goes_on, *body.carried])

    def _condition_shape(self) -> tuple[int, ...]:
        return () if isinstance(self.condition, bool) else shape_of(self.condition)

    def _without_trips(self) -> Results | None:
        """What is carried in, and no rows, whose types the body tells."""
        if not self.rows:
            return list(self.initial)
        yielded = self._trip(Body(self.node, self.initial, ()))
        return None if yielded is None else [*self.initial, *(_empty(self.node, row) for row in self._stacked(yielded))]

    def _stacked(self, yielded: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return yielded[1 + len(self.initial) :]

    def _region(self, may_refuse: bool) -> Results | None:
        """The results of a loop; `None`, too, where shapes change, unless it `may_refuse` that."""
        body = Body(self.node, self.initial, ())
        yielded = self._trip(body)
        if yielded is None:
            return None
        following = yielded[1 : 1 + len(self.initial)]
        for position, (before, after) in enumerate(zip(self.initial, following, strict=True)):
            if not may_refuse and shape_of(before) != shape_of(after):
                return None
            _check_carried(self.node, position, before, after)
        goes_on = self.node.graph.fold(yielded[0])
        count, condition, next_condition = self.count, None, None
        if goes_on is not None and not goes_on.item() and isinstance(self.condition, bool):
            if not isinstance(count, SSAValue):
                count, goes_on = 1, np.True_
        if goes_on is None or not goes_on.item() or not isinstance(self.condition, bool):
            condition, next_condition = self._conditions(body, yielded[0])
        if count is None and condition is None:
            raise ModelError("Loop: it never ends", node=self.node.name, hint="give it a trip count or a condition")
        if self.rows and condition is not None:
            position = len(self.initial)
            raise self.node.unsupported(f"how many rows result {position} has is known at run time only")
        rows = [Rows(row) for row in self._stacked(yielded)]
        return list(body.emit(Trips(count, condition), following, rows, next_condition))

    def _conditions(self, body: Body, yielded: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The condition of the first trip, and of the next ones, in one shape."""
        verify_scalar(yielded, i1, "the condition")
        if isinstance(self.condition, bool):
            return self.node.constant(np.full(shape_of(yielded), self.condition)), yielded
        if shape_of(yielded) != shape_of(self.condition):
            with self.node.graph.inside(body.block):
                yielded = self.node.emit(ReshapeOp, yielded, shape=shape_of(self.condition))
        return self.condition, yielded

    def _unrolled(self, count: int) -> Results | None:
        """The results of all trips one after the other, as nodes of their own."""
        if not isinstance(self.condition, bool):
            raise self.node.unsupported("sizes depend on the trip, and the condition on an input of the model")
        carried, rows = list(self.initial), list[Sequence[SSAValue]]()
        for trip in range(count):
            number = self.node.constant(np.array(trip, np.int64))
            goes_on = self.node.constant(np.array(True))
            found = self.node.inline("body", [number, goes_on, *carried])
            if found is None:
                return None
            known = self.node.graph.fold(found[0])
            if known is None:
                raise self.node.unsupported("sizes depend on the trip, and the condition on an input of the model")
            carried = found[1 : 1 + len(carried)]
            rows.append(self._stacked(found))
            if not known.item():
                break
        return [*carried, *(self._joined(column) for column in zip(*rows, strict=True))]

    def _joined(self, rows: Sequence[SSAValue]) -> SSAValue:
        """Rows as one tensor."""
        if any(row.type != rows[0].type for row in rows):
            raise ModelError("Loop: the rows of a result have different shapes", node=self.node.name)
        return self.node.emit(
            ConcatOp, [self.node.emit(ReshapeOp, row, shape=(1, *shape_of(row))) for row in rows], axis=0
        )


# ---- Scan


@onnx_operator("Scan", since=9)
def scan(node: Node) -> Results | None:
    """A loop over the rows of tensors along any axes, forwards or backwards."""
    states, tensors = _operands(node, 0)
    axes = node.ints("scan_input_axes", [0] * len(tensors))
    check_number(node, len(tensors), len(axes), "scan_input_axes has")
    fronted = [_moved(node, value, normalize_axis(axis, len(shape_of(value))), 0) for value, axis in zip(tensors, axes)]
    rows = [Rows(*pair) for pair in zip(fronted, _directions(node, "scan_input_directions", len(tensors)))]
    results = _scan(node, states, rows, "scan_output_directions")
    if results is None:
        return None
    stacked = results[len(states) :]
    axes = node.ints("scan_output_axes", [0] * len(stacked))
    check_number(node, len(stacked), len(axes), "scan_output_axes has")
    placed = [_moved(node, value, 0, normalize_axis(axis, len(shape_of(value)))) for value, axis in zip(stacked, axes)]
    return [*results[: len(states)], *placed]


@onnx_operator("Scan")
def scan_of_batch(node: Node) -> Results | None:
    """Scan of opset 8: axis 0 of all operands is a batch, each element of which is scanned along the next axis."""
    if node.optional(0) is not None:
        lengths, steps = node.array(0, "the lengths of the sequences"), _operands(node, 1)[1]
        if any(set(lengths.reshape(-1).tolist()) != {shape_of(value)[1]} for value in steps):
            raise node.unsupported("sequences of different lengths are not supported")
    states, tensors = _operands(node, 1)
    batches = {shape_of(value)[0] for value in (*states, *tensors)}
    if len(batches) != 1:
        raise ModelError(f"Scan: operands have the batches {sorted(batches)}", node=node.name)
    body = Body(node, (), [Rows(value) for value in (*states, *tensors)])
    with node.graph.inside(body.block):
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
    """For each tensor whether it is reversed."""
    directions = node.ints(name, [0] * count) if name else [0] * count
    check_number(node, count, len(directions), f"{name} has")
    if wrong := [direction for direction in directions if direction not in (0, 1)]:
        raise ModelError(f"{name} of Scan has {wrong[0]}", node=node.name, hint="0 is forwards, 1 is backwards")
    return [bool(direction) for direction in directions]


def _moved(node: Node, value: SSAValue, axis: int, place: int) -> SSAValue:
    """The value with an axis at another place."""
    order = [position for position in range(len(shape_of(value))) if position != axis]
    order.insert(place, axis)
    return value if order == sorted(order) else node.emit(TransposeOp, value, permutation=order)


def _scan(node: Node, states: Sequence[SSAValue], scanned: Sequence[Rows], directions: str) -> list[SSAValue] | None:
    """The final states, then the stacked results; `directions` names the attribute with those of the results."""
    lengths = sorted({shape_of(rows.value)[0] for rows in scanned if shape_of(rows.value)})
    if len(lengths) != 1:
        raise ModelError(f"Scan: it goes over tensors of {lengths} rows", node=node.name)
    graph = node.subgraph("body")
    check_number(node, len(states) + len(scanned), len(graph.input), "its body takes")
    body = Body(node, states, scanned)
    yielded = node.region("body", body.block, [*body.carried, *body.rows])
    if yielded is None:
        return None
    if len(yielded) < len(states):
        check_number(node, len(states), len(yielded), "its body gives")
    following, rows = yielded[: len(states)], yielded[len(states) :]
    for position, (before, after) in enumerate(zip(states, following, strict=True)):
        _check_carried(node, position, before, after)
    if not lengths[0]:
        return [*states, *(_empty(node, row) for row in rows)]
    stacked = [Rows(*pair) for pair in zip(rows, _directions(node, directions, len(rows)))]
    return body.emit(Trips(lengths[0]), following, stacked)

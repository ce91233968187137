"""Class probabilities from pairwise ones, as in libsvm (Wu, Lin and Weng, 2004, the second method)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    ClipOp,
    DivOp,
    GreaterOrEqualOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp
from glow_mlir.dialects.glow_high.loop import Trips
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceSumOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.node import Node

_LEAST = 1e-7
"""The lower bound of pairwise probabilities."""

_MAX_TRIPS = 100
"""libsvm's limit of iterations, or the number of classes if that is larger."""


def class_probabilities(node: Node, pairs: SSAValue, classes: int) -> SSAValue:
    """
    The class probabilities [N, classes] that fit pairwise ones [N, classes · (classes − 1) / 2].

    A pairwise probability is that of the first class of the pair. A row has converged when no derivative is above
    0.005 / classes, as in libsvm.
    """
    pairs = node.emit(ClipOp, pairs, node.splat(_LEAST, pairs), node.splat(1 - _LEAST, pairs))
    return _Estimate(node, pairs, classes).run()


class _Estimate:
    """The iteration on all rows at once; converged rows do not change any more."""

    def __init__(self, node: Node, pairs: SSAValue, classes: int) -> None:
        self.node = node
        self.classes = classes
        self.rows = sizes_of(pairs)[0]
        self.matrix = self._matrix(pairs)

    def _column(self, value: SSAValue, number: int) -> SSAValue:
        return cut(self.node, value, {1: (number, number + 1)})

    def _matrix(self, pairs: SSAValue) -> SSAValue:
        """The quadratic form Q [N, classes, classes] that the probabilities minimize."""
        node, count = self.node, self.classes
        probability: dict[tuple[int, int], SSAValue] = {}
        for number, (first, second) in enumerate(combinations(range(count), 2)):
            found = self._column(pairs, number)
            probability[first, second] = found
            probability[second, first] = node.emit(SubOp, node.splat(1.0, found), found)
        columns: list[SSAValue] = []
        for row in range(count):
            for column in range(count):
                if row == column:
                    squares = [self._product(probability[other, row]) for other in range(count) if other != row]
                    columns.append(self._sum(squares))
                else:
                    product = node.emit(MulOp, probability[column, row], probability[row, column])
                    columns.append(node.emit(SubOp, node.splat(0.0, product), product))
        return node.emit(ReshapeOp, node.emit(ConcatOp, columns, axis=1), shape=(self.rows, count, count))

    def _product(self, value: SSAValue) -> SSAValue:
        return self.node.emit(MulOp, value, value)

    def _sum(self, values: list[SSAValue]) -> SSAValue:
        found = values[0]
        for value in values[1:]:
            found = self.node.emit(AddOp, found, value)
        return found

    def run(self) -> SSAValue:
        """The probabilities of all rows."""
        node, count = self.node, self.classes
        begin = node.splat(1.0 / count, self.matrix, (self.rows, count))
        body = Body(node, [begin], ())
        with node.builder.inside(body.block):
            (before,) = body.carried
            following, error = self._trip(before)
            limit = node.splat(0.005 / count, error)
            goes_on = node.emit(GreaterOrEqualOp, error, limit)
            following = node.emit(WhereOp, goes_on, following, before)
            most = node.emit(ReduceMaxOp, error, axes=[0, 1], keepdims=False)
            again = node.emit(GreaterOrEqualOp, most, node.splat(0.005 / count, most))
        trips = Trips(max(_MAX_TRIPS, count), node.constant(np.array(True), "goes_on"))
        return body.emit(trips, [following], (), again)[0]

    def _trip(self, before: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The probabilities after an iteration, and the largest derivative before it, [N, 1]."""
        node, count = self.node, self.classes
        wide = node.emit(ReshapeOp, before, shape=(self.rows, 1, count))
        gradient = node.emit(ReduceSumOp, node.emit(MulOp, self.matrix, wide), axes=[2], keepdims=False)
        value = node.emit(ReduceSumOp, node.emit(MulOp, gradient, before), axes=[1], keepdims=True)
        distances = node.emit(AbsOp, node.emit(SubOp, gradient, value))
        error = node.emit(ReduceMaxOp, distances, axes=[1], keepdims=True)
        found = before
        for number in range(count):
            row = node.emit(ReshapeOp, cut(node, self.matrix, {1: (number, number + 1)}), shape=(self.rows, count))
            own, slope = self._column(row, number), self._column(gradient, number)
            step = node.emit(DivOp, node.emit(SubOp, value, slope), own)
            scale = node.emit(AddOp, node.splat(1.0, step), step)
            risen = node.emit(AddOp, node.emit(MulOp, step, own), node.emit(MulOp, node.splat(2.0, slope), slope))
            value = node.emit(AddOp, value, node.emit(MulOp, step, risen))
            value = node.emit(DivOp, value, node.emit(MulOp, scale, scale))
            gradient = node.emit(DivOp, node.emit(AddOp, gradient, node.emit(MulOp, step, row)), scale)
            chosen = np.zeros((1, count), np.float32)
            chosen[0, number] = 1
            moved = node.emit(MulOp, node.constant(chosen, "class"), step)
            found = node.emit(DivOp, node.emit(AddOp, found, moved), scale)
        return found, error

"""Operators that are linear in one operand — convolutions and matrix products — under one description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, LocationAttr
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.deferred import Deferred, Scaled, Stored
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.dialects.windows import is_channels_last

Factor = tuple[np.ndarray, Shape]
"""A factor for each output or input of a linear operator, and the shape, one of those two, that it broadcasts in."""


@dataclass(frozen=True)
class Linear:
    """An operator that multiplies the channels of `data`, its last axis, by `weights`, and adds `bias`."""

    op: HighOp
    data: SSAValue
    weights: SSAValue
    bias: SSAValue | None
    view: Shape
    """A shape of the weights in which outputs and inputs have axes of their own."""
    outputs: Shape
    """The shape of one element for each output that broadcasts to the view."""
    inputs: Shape
    """The shape of one element for each input that broadcasts to the view."""
    answers_evenly: bool
    """Whether an addend a channel of the data is one of the result: no padding, and one matrix for all batches."""

    @property
    def channels(self) -> int:
        """The number of outputs."""
        return shape_of(self.op.results[0])[-1]

    def scaled(self, weights: Deferred, factors: Sequence[Factor], dtype: np.dtype[Any]) -> Scaled:
        """`weights` times `factors`; products are in f64, and rounded to `dtype` at the end."""
        return Scaled(weights, [self._broadcast(factor, side, weights.shape) for factor, side in factors], dtype)

    def _broadcast(self, factor: np.ndarray, side: Shape, shape: Shape) -> np.ndarray:
        """A factor as an array of as many axes as weights of that shape, which it broadcasts to."""
        placed = factor.reshape(side)
        if len(side) == len(shape):
            return placed
        # The first two axes of the view are the first of the weights: it repeats what differs along only one of them.
        if side[0] == 1 or side[1] == self.view[1]:
            return placed.reshape(-1, *side[2:])
        return np.broadcast_to(placed, (*self.view[:2], *side[2:])).reshape(shape[0], *side[2:])

    def answer(self, weights: Deferred, addend: np.ndarray) -> np.ndarray:
        """What the operator, where it `answers_evenly`, gives for a constant a channel; in f64."""
        factor = self._broadcast(addend, self.inputs, weights.shape)
        sizes = self._broadcast(np.empty(self.channels), self.outputs, weights.shape).shape
        axis = sizes.index(max(sizes))
        summed = tuple(other for other in range(len(sizes)) if other != axis)
        known = weights if weights.separable(axis) else Stored(weights.array())
        sums = [(known.part(axis, *span) * _cut(factor, axis, *span)).sum(axis=summed) for span in known.spans(axis)]
        return np.concatenate(sums)

    def rebuilt(self, data: SSAValue, weights: SSAValue, bias: SSAValue | None, location: LocationAttr) -> HighOp:
        """The same operator with other operands."""
        properties = {name: value for name, value in self.op.properties.items() if name != "operandSegmentSizes"}
        return type(self.op).make(data, weights, bias, location=location, **properties)


def _cut(factor: np.ndarray, axis: int, begin: int, end: int) -> np.ndarray:
    """The part of a factor, which broadcasts to an array, for that part of the array."""
    return factor if factor.shape[axis] == 1 else factor[(slice(None),) * axis + (slice(begin, end),)]


def _conv(op: ConvOp) -> Linear | None:
    if not is_channels_last(op.layout):
        return None
    outputs, *kernel, depth = shape_of(op.filter)
    group, ones = integer(op.group), (1,) * len(kernel)
    return Linear(
        op,
        op.input,
        op.filter,
        op.bias,
        view=(group, outputs // group, *kernel, depth),
        outputs=(group, outputs // group, *ones, 1),
        inputs=(group, 1, *ones, depth),
        answers_evenly=not any(op.window().pads),
    )


def _conv_transpose(op: ConvTransposeOp) -> Linear | None:
    if not is_channels_last(op.layout):
        return None
    depth, *kernel, outputs = shape_of(op.filter)
    group, ones = integer(op.group), (1,) * len(kernel)
    return Linear(
        op,
        op.input,
        op.filter,
        op.bias,
        view=(group, depth // group, *kernel, outputs),
        outputs=(group, 1, *ones, outputs),
        inputs=(group, depth // group, *ones, 1),
        answers_evenly=False,
    )


def _matmul(op: MatMulOp) -> Linear | None:
    if flag(op.transpose_left):
        return None
    *batch, rows, columns = shape_of(op.right)
    ones = (1,) * len(batch)
    sides = [(*ones, 1, columns), (*ones, rows, 1)]
    if flag(op.transpose_right):
        sides.reverse()
    return Linear(op, op.left, op.right, op.bias, shape_of(op.right), *sides, answers_evenly=not batch)


def _fully_connected(op: FullyConnectedOp) -> Linear:
    rows, columns = shape_of(op.weights)
    return Linear(op, op.input, op.weights, op.bias, (rows, columns), (1, columns), (rows, 1), answers_evenly=True)


DESCRIPTIONS: dict[type[Operation], Callable[..., Linear | None]] = {
    ConvOp: _conv,
    ConvTransposeOp: _conv_transpose,
    FullyConnectedOp: _fully_connected,
    MatMulOp: _matmul,
}
"""Operator → how it is linear; `None` where its channels are not the last axis."""


def linear_operator(op: Operation) -> Linear | None:
    """How `op` is linear in its first operand, if it is, and on floats."""
    describe = DESCRIPTIONS.get(type(op))
    if describe is None or not isinstance(element_of(op.results[0]), AnyFloat):
        return None
    return describe(op)

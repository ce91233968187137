"""Linear operators: convolutions and matrix products under one description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, LocationAttr
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.deferred import Deferred, Scaled, Stored
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.interfaces import LinearForm
from glow_mlir.dialects.shapes import Shape, element_of, size_along
from glow_mlir.support.dataclass import dataclass

Factor = tuple[np.ndarray, Shape]
"""A factor per output or input of a linear operator, and the shape, one of those two, in which it broadcasts."""


@dataclass(frozen=True)
class Linear:
    """An operator with its linear form."""

    op: HighOp
    form: LinearForm

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return size_along(self.op.results[0], -1)

    def scaled(self, weights: Deferred, factors: Sequence[Factor], dtype: np.dtype[Any]) -> Scaled:
        """Multiply `weights` by `factors` in f64, rounded to `dtype` at the end."""
        return Scaled(weights, [self._broadcast(factor, side, weights.shape) for factor, side in factors], dtype)

    def _broadcast(self, factor: np.ndarray, side: Shape, shape: Shape) -> np.ndarray:
        """Reshape a factor so that it broadcasts to weights of the shape `shape`."""
        placed = factor.reshape(side)
        if len(side) == len(shape):
            return placed
        # The first two axes of the view split the first of the weights: repeat a factor that varies along one.
        if side[0] == 1 or side[1] == self.form.view[1]:
            return placed.reshape(-1, *side[2:])
        return np.broadcast_to(placed, (*self.form.view[:2], *side[2:])).reshape(shape[0], *side[2:])

    def answer(self, weights: Deferred, addend: np.ndarray) -> np.ndarray:
        """The output for an input that is constant per channel, for operators that `keeps_addends`; in f64."""
        factor = self._broadcast(addend, self.form.inputs, weights.shape)
        if self.channels == 1:  # There is no axis of outputs.
            return (weights.array() * factor).sum(dtype=np.float64).reshape(1)
        sizes = self._broadcast(np.empty(self.channels), self.form.outputs, weights.shape).shape
        axis = sizes.index(max(sizes))
        summed = tuple(other for other in range(len(sizes)) if other != axis)
        known = weights if weights.separable(axis) else Stored(weights.array())
        sums = [(known.part(axis, *span) * _cut(factor, axis, *span)).sum(axis=summed) for span in known.spans(axis)]
        return np.concatenate(sums)

    def rebuilt(self, data: SSAValue, weights: SSAValue, bias: SSAValue | None, location: LocationAttr) -> HighOp:
        """Rebuild the operator with other operands."""
        properties = {name: value for name, value in self.op.properties.items() if name != "operandSegmentSizes"}
        return type(self.op).make(data, weights, bias, location=location, **properties)


def _cut(factor: np.ndarray, axis: int, begin: int, end: int) -> np.ndarray:
    """Slice a factor that broadcasts to an array, for the slice [begin, end) of the array."""
    return factor if factor.shape[axis] == 1 else factor[(slice(None),) * axis + (slice(begin, end),)]


def linear_operator(op: Operation) -> Linear | None:
    """The linear form of `op` in its first operand; `None` if it has none or does not compute on floats."""
    if not isinstance(op, HighOp) or type(op).linear_form is HighOp.linear_form:  # The common case.
        return None
    if not isinstance(element_of(op.results[0]), AnyFloat):
        return None
    form = op.linear_form()
    return None if form is None else Linear(op, form)

"""PyTorch's running totals and extremes along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float, numpy_dtype, ui8
from glow_mlir.dialects.expressions import Tensor, equal, exp, log1p, maximum, not_equal, where
from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.glow_high.data_movement import PadOp, SliceOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.frontends.torch.formulas import exactly
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import Scalar, TorchNode, axis_of
from glow_mlir.frontends.torch.positions import positions_along
from glow_mlir.support.symbols import Size

Combination = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
"""An associative combination of the results for two adjacent ranges."""


def scanned(
    node: TorchNode, values: Sequence[SSAValue], axis: int, combine: Combination, neutral: Sequence[Scalar]
) -> list[SSAValue]:
    """
    An inclusive scan along an axis.

    Each step doubles the length of ranges (Hillis and Steele, 1986); `neutral` are the results for an empty range.
    """
    found, reach = list(values), 1
    while reach < largest(sizes_of(values[0])[axis]):
        before = [_moved(node, value, axis, reach, fill) for value, fill in zip(found, neutral, strict=True)]
        formulas = combine([node.formulas.of(value) for value in before], [node.formulas.of(value) for value in found])
        found = [node.value(formula) for formula in formulas]
        reach *= 2
    return found


def _moved(node: TorchNode, value: SSAValue, axis: int, by: int, fill: Scalar) -> SSAValue:
    """Shift the elements by `by` positions along an axis; the first ones become `fill`."""
    sizes = sizes_of(value)
    pads = [0] * (2 * len(sizes))
    pads[axis] = by
    padded = node.emit(PadOp, value, node.tensor(fill, element_of(value)), pads=pads)
    starts: list[Size] = [0] * len(sizes)
    return node.emit(SliceOp, padded, starts=starts, ends=sizes)


def _running(operator: type[ops.CumSumOp | ops.CumProdOp]) -> Callable[..., SSAValue]:
    def run(node: TorchNode, value: SSAValue, axis: int, **_: object) -> SSAValue:
        found, count = node.tensor(value), rank_of(value)
        return node.emit(operator, found, axis=axis_of(axis, count)) if count else found

    return run


torch_operator("cumsum.default")(_running(ops.CumSumOp))
torch_operator("cumprod.default")(_running(ops.CumProdOp))


def _is_nan(x: Tensor) -> Tensor:
    return not_equal(x, x)


def _extreme(is_largest: bool) -> Combination:
    """Combine two extremes: the later one unless the earlier one exceeds it; NaN exceeds every number."""

    def combine(before: Sequence[Tensor], own: Sequence[Tensor]) -> Sequence[Tensor]:
        (value, position), (other, behind) = before, own
        stays = value > other if is_largest else value < other
        if is_float(value.element):
            stays = (stays | _is_nan(value)) & equal(other, other)
        return where(stays, value, other), where(stays, position, behind)

    return combine


def running_extreme(node: TorchNode, value: SSAValue, axis: int, is_largest: bool) -> list[SSAValue]:
    """The running extremes along an axis, and their last positions."""
    numbers = node.cast(value, ui8) if is_bool(element_of(value)) else value
    indices = positions_along(node, sizes_of(value), axis)
    combine = _extreme(is_largest)
    return scanned(node, (numbers, indices), axis, combine, (neutral_extreme(numbers, is_largest), 0))


def neutral_extreme(value: SSAValue, is_largest: bool) -> float:
    """The neutral element of an extreme: the lowest number of an element type for maxima, the highest for minima."""
    element = element_of(value)
    if is_float(element):
        return -math.inf if is_largest else math.inf
    info = np.iinfo(numpy_dtype(element))
    return int(info.min if is_largest else info.max)


def _running_extreme(is_largest: bool) -> Callable[..., list[SSAValue]]:
    def run(node: TorchNode, value: SSAValue, axis: int) -> list[SSAValue]:
        if not rank_of(value):
            return [value, node.splat(0, *node.result(1))]
        found, indices = running_extreme(node, value, axis_of(axis, rank_of(value)), is_largest)
        return [node.tensor(found), indices]

    return run


torch_operator("cummax.default")(_running_extreme(is_largest=True))
torch_operator("cummin.default")(_running_extreme(is_largest=False))


def logarithm_of_sum(x: Tensor, y: Tensor) -> Tensor:
    """log(exp(x) + exp(y)), without overflow."""
    peak = maximum(x, y)
    return where(equal(x, y) & equal(abs(x), math.inf), x, peak + log1p(exp(-abs(x - y))))


@torch_operator("logcumsumexp.default")
def log_cumulative_sum(node: TorchNode, value: SSAValue, axis: int) -> SSAValue:
    """The logarithms of running sums of exponentials."""
    if not rank_of(value):
        return value

    def combine(before: Sequence[Tensor], own: Sequence[Tensor]) -> Sequence[Tensor]:
        return [logarithm_of_sum(before[0], own[0])]

    (found,) = scanned(node, [node.cast(value, exactly(node))], axis_of(axis, rank_of(value)), combine, (-math.inf,))
    return node.cast(found, node.element)

"""PyTorch's statistics: variances, medians, the most frequent elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.expressions import maximum, not_equal, where
from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.glow_high.elementwise_math import IsNanOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.cumulative import running_extreme
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat
from glow_mlir.frontends.torch.node import TorchNode, axis_of
from glow_mlir.frontends.torch.positions import at_positions, positions_along
from glow_mlir.frontends.torch.reductions import axes_of, reduced
from glow_mlir.frontends.torch.sorting import length, ordered
from glow_mlir.support.symbols import product_of

Axes = int | Sequence[int] | None


def _moments(
    node: TorchNode, value: SSAValue, axes: Axes, correction: float | None, keepdims: bool
) -> tuple[SSAValue, SSAValue]:
    """The variance along axes, with count minus correction as divisor; and the mean."""
    along = axes_of(axes, rank_of(value))
    x = node.cast(value, node.wide)
    mean = reduced(node, ops.ReduceMeanOp, x, along, keepdims=True)
    centred = node.formulas.of(x) - node.formulas.of(mean)
    total = reduced(node, ops.ReduceSumOp, node.value(centred * centred), along, keepdims)
    count = node.of(product_of([sizes_of(value)[axis] for axis in along]), node.wide)
    divisor = maximum(count - float(1 if correction is None else correction), 0.0)
    variance = node.value(node.formulas.of(total) / divisor)
    return node.tensor(variance), node.reshaped(node.tensor(mean))


@torch_operator("var.correction")
def variance(
    node: TorchNode, value: SSAValue, axes: Axes = None, *, correction: float | None = None, keepdim: bool = False
) -> SSAValue:
    """The variance along axes."""
    return _moments(node, value, axes, correction, keepdim)[0]


@torch_operator("var.dim")
def variance_of_samples(
    node: TorchNode, value: SSAValue, axes: Axes = None, unbiased: bool = True, keepdim: bool = False
) -> SSAValue:
    """The variance along axes; the divisor is count - 1 if `unbiased`."""
    return _moments(node, value, axes, int(unbiased), keepdim)[0]


@torch_operator("var_mean.correction")
def variance_and_mean(
    node: TorchNode, value: SSAValue, axes: Axes = None, *, correction: float | None = None, keepdim: bool = False
) -> list[SSAValue]:
    """The variance along axes, and the mean."""
    return list(_moments(node, value, axes, correction, keepdim))


def _median(node: TorchNode, value: SSAValue, axis: int, skips_nan: bool) -> tuple[SSAValue, SSAValue]:
    """The median along an axis, the lower one of two, and its position; the axis is kept."""
    values, indices = ordered(node, value, axis, length(node, value, axis), largest=False)
    count = node.of(sizes_of(value)[axis], i64)
    rank = (count - 1) / 2
    if is_float(element_of(value)):
        missing = node.cast(node.emit(IsNanOp, value), i64)
        gaps = node.formulas.of(node.emit(ops.ReduceSumOp, missing, axes=(axis,)))
        # NaN sorts last: unless skipped, the first NaN is the median.
        rank = maximum(count - gaps - 1, 0) / 2 if skips_nan else where(gaps > 0, count - gaps, rank)
    one = tuple(1 if other == axis else size for other, size in enumerate(sizes_of(value)))
    wanted = node.expanded(node.value(rank), one)
    return at_positions(node, values, wanted, axis), at_positions(node, indices, wanted, axis)


def _medians(skips_nan: bool) -> Callable[..., list[SSAValue]]:
    def run(node: TorchNode, value: SSAValue, axis: int, keepdim: bool = False) -> list[SSAValue]:
        if not rank_of(value) or 0 in node.sizes:
            return [node.reshaped(value), node.splat(0, *node.result(1))]
        found, indices = _median(node, value, axis_of(axis, rank_of(value)), skips_nan)
        return [node.reshaped(found), node.reshaped(indices)]

    return run


def _median_of_all(skips_nan: bool) -> Callable[..., SSAValue]:
    def run(node: TorchNode, value: SSAValue) -> SSAValue:
        if 0 in sizes_of(value):
            return node.splat(math.nan if is_float(node.element) else -(1 << 63), node.element)
        return node.reshaped(_median(node, flat(node, value), 0, skips_nan)[0])

    return run


for _name, _skips in {"median": False, "nanmedian": True}.items():
    torch_operator(f"{_name}.dim")(_medians(_skips))
    torch_operator(f"{_name}.default")(_median_of_all(_skips))


@torch_operator("mode.default")
def mode(node: TorchNode, value: SSAValue, axis: int = -1, keepdim: bool = False) -> list[SSAValue]:
    """The most frequent element along an axis, the smallest one in a tie, and its last position."""
    if not rank_of(value) or 0 in node.sizes:
        return [node.reshaped(value), node.splat(0, *node.result(1))]
    axis = axis_of(axis, rank_of(value))
    values, indices = ordered(node, value, axis, length(node, value, axis), largest=False)
    position = node.formulas.of(positions_along(node, sizes_of(value), axis))
    before = at_positions(node, values, node.value(maximum(position - 1, 0)), axis)
    begins = not_equal(node.formulas.of(values), node.formulas.of(before))
    starts, _ = running_extreme(node, node.value(where(begins, position, 0)), axis, is_largest=True)
    run = node.value(position - node.formulas.of(starts))
    longest = node.emit(ops.ArgMaxOp, run, axis=axis)
    return [node.reshaped(at_positions(node, item, longest, axis)) for item in (values, indices)]

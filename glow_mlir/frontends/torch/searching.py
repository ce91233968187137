"""PyTorch's operators that search sorted lists: searchsorted, bucketize and repeat_interleave."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    AndOp,
    GreaterOp,
    GreaterOrEqualOp,
    LessOrEqualOp,
    MinOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import NotOp
from glow_mlir.dialects.glow_high.indexing import GatherElementsOp, GatherOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.frontends.builder.slices import iota, scalar
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.indexing import as_indices
from glow_mlir.frontends.torch.node import Operand, TorchNode


def positions_among(node: TorchNode, bounds: SSAValue, values: SSAValue, right: bool) -> SSAValue:
    """
    The insertion position of each value among sorted bounds; after equal bounds if `right`, else before them.

    Bounds are one list, or a list along the last axis for each row of values. NaN sorts after all numbers.
    """
    size = sizes_of(bounds)[-1]
    if size == 0:
        return node.splat(0, i64, sizes_of(values))
    bounds, values = node.promoted(bounds, values) if is_bool(element_of(values)) else _alike(node, bounds, values)
    count, one = scalar(node, size), node.splat(1, i64)
    found = node.splat(0, i64, sizes_of(values))
    step = 1 << (largest(size).bit_length() - 1)
    while step:
        reached = node.emit(AddOp, found, node.splat(step, i64))
        position = node.emit(SubOp, node.emit(MinOp, reached, count), one)
        own = _at(node, bounds, position)
        stops = node.emit(GreaterOp if right else GreaterOrEqualOp, own, values)
        goes_on = node.emit(AndOp, node.emit(NotOp, stops), node.emit(LessOrEqualOp, reached, count))
        found = node.emit(WhereOp, goes_on, reached, found)
        step //= 2
    return found


def _alike(node: TorchNode, bounds: SSAValue, values: SSAValue) -> tuple[SSAValue, ...]:
    """Convert bounds and values to a common element type."""
    return (bounds, values) if element_of(bounds) == element_of(values) else node.promoted(bounds, values)


def _at(node: TorchNode, bounds: SSAValue, positions: SSAValue) -> SSAValue:
    """The bounds at positions of their lists."""
    if rank_of(bounds) == 1:
        return node.emit(GatherOp, bounds, positions, axis=0)
    return node.emit(GatherElementsOp, bounds, positions, axis=rank_of(bounds) - 1)


@torch_operator("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    node: TorchNode,
    bounds: SSAValue,
    values: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: SSAValue | None = None,
) -> SSAValue:
    """The insertion positions of values in sorted lists, along the last axis."""
    given = values if isinstance(values, SSAValue) else node.tensor(values, element_of(bounds))
    if sorter is not None:
        bounds = node.emit(GatherElementsOp, bounds, as_indices(node, sorter), axis=rank_of(bounds) - 1)
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    return node.cast(positions_among(node, bounds, given, right or side == "right"), node.element)


@torch_operator("bucketize.Tensor", "bucketize.Scalar")
def bucketize(
    node: TorchNode, values: Operand, bounds: SSAValue, *, out_int32: bool = False, right: bool = False
) -> SSAValue:
    """The buckets of values between sorted bounds."""
    return searchsorted(node, bounds, values, right=right)


@torch_operator("repeat_interleave.Tensor")
def repeat_interleave(node: TorchNode, repeats: SSAValue, *, output_size: int | None = None) -> SSAValue:
    """The index of each element of `repeats`, repeated that number of times."""
    (size,) = node.sizes
    if size == 0:
        return node.splat(0, node.element, (0,))
    ends = node.emit(CumSumOp, node.cast(repeats, i64), axis=0)
    return node.cast(positions_among(node, ends, iota(node, size), right=True), node.element)

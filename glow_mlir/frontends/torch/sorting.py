"""PyTorch's operators that sort elements, or select elements by rank."""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.glow_high.reductions import TopKOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of


def ordered(node: TorchNode, value: SSAValue, axis: int, count: int, largest: bool) -> tuple[SSAValue, SSAValue]:
    """The largest or smallest elements of an axis in order, and their positions; the order is stable."""
    element = element_of(value)
    given = node.cast(value, i32) if is_bool(element) else value
    found, positions = node.emit_all(TopKOp, given, k=count, axis=axis, largest=largest)
    return node.cast(found, element), positions


def length(node: TorchNode, value: SSAValue, axis: int) -> int:
    """The size of an axis; raises `UnsupportedError` if it is known at run time only."""
    size = sizes_of(value)[axis]
    if not isinstance(size, int):
        raise node.unsupported("sorting an axis whose size is known at run time only is not supported")
    return size


def _without_axes(node: TorchNode, value: SSAValue) -> list[SSAValue]:
    """The result for a scalar or an empty value: the value itself, and zeros as positions."""
    return [node.reshaped(value), node.splat(0, i64, node.sizes)]


@torch_operator("sort.default")
def sort(node: TorchNode, value: SSAValue, axis: int = -1, descending: bool = False) -> list[SSAValue]:
    """Sort the elements of an axis; sorted elements and their positions."""
    if not rank_of(value) or 0 in node.sizes:
        return _without_axes(node, value)
    axis = axis_of(axis, rank_of(value))
    return list(ordered(node, value, axis, length(node, value, axis), descending))


@torch_operator("sort.stable")
def sort_stable(
    node: TorchNode, value: SSAValue, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> list[SSAValue]:
    """Sort the elements of an axis, with a stable order; sorted elements and their positions."""
    return sort(node, value, dim, descending)


@torch_operator("topk.default")
def topk(
    node: TorchNode, value: SSAValue, count: int, axis: int = -1, largest: bool = True, _: bool = True
) -> list[SSAValue]:
    """The largest or smallest elements of an axis in order, and their positions."""
    if not rank_of(value) or 0 in node.sizes:
        return [
            node.reshaped(value) if not rank_of(value) else node.splat(0, node.element, node.sizes),
            node.splat(0, i64, node.sizes),
        ]
    return list(ordered(node, value, axis_of(axis, rank_of(value)), count, largest))


@torch_operator("kthvalue.default")
def kthvalue(node: TorchNode, value: SSAValue, number: int, axis: int = -1, _: bool = False) -> list[SSAValue]:
    """The k-th smallest element of an axis, counted from 1, and its position."""
    if not rank_of(value) or 0 in node.sizes:
        return _without_axes(node, value)
    axis = axis_of(axis, rank_of(value))
    found = ordered(node, value, axis, number, largest=False)
    return [node.reshaped(cut(node, item, {axis: (number - 1, number)})) for item in found]

"""PyTorch's reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, ui8
from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.logic import truth
from glow_mlir.frontends.torch.node import TorchNode, axis_of
from glow_mlir.support.symbols import product_of


def axes_of(axes: int | Sequence[int] | None, count: int) -> tuple[int, ...]:
    """Non-negative axes, sorted; all axes if none are given."""
    if axes is None or (not isinstance(axes, int) and not axes):
        return tuple(range(count))
    given = (axes,) if isinstance(axes, int) else axes
    return tuple(sorted(axis_of(axis, count) for axis in given)) if count else ()


def reduced(
    node: TorchNode, operator: type[ops.Reduction], value: SSAValue, axes: Sequence[int], keepdims: bool
) -> SSAValue:
    """Reduce a value along axes; without axes, the value itself."""
    return node.emit(operator, value, axes=tuple(axes), keepdims=keepdims) if axes else value


OF_TRUTH: Mapping[type[ops.Reduction], type[ops.Reduction]] = {
    ops.ReduceProdOp: ops.ReduceMinOp,
    ops.ReduceSumOp: ops.ReduceMaxOp,
}
"""Reduction of numbers → its equivalent for truth values with a boolean result."""


def _reduction(operator: type[ops.Reduction]) -> Callable[..., SSAValue]:
    def run(
        node: TorchNode, value: SSAValue, axes: int | Sequence[int] | None = None, keepdims: bool = False, **_: Any
    ) -> SSAValue:
        given, along = node.tensor(value), axes_of(axes, rank_of(value))
        if operator not in OF_TRUTH or not is_bool(element_of(given)):
            return reduced(node, operator, given, along, keepdims)
        return node.tensor(reduced(node, OF_TRUTH[operator], _numbers(node, given), along, keepdims))

    return run


REDUCTIONS: Mapping[str, tuple[type[ops.Reduction], tuple[str, ...]]] = {
    "amax": (ops.ReduceMaxOp, ("default",)),
    "amin": (ops.ReduceMinOp, ("default",)),
    "max": (ops.ReduceMaxOp, ("default",)),
    "mean": (ops.ReduceMeanOp, ("default", "dim")),
    "min": (ops.ReduceMinOp, ("default",)),
    "prod": (ops.ReduceProdOp, ("default", "dim_int")),
    "sum": (ops.ReduceSumOp, ("default", "dim_IntList")),
}
"""Name → the reduction, and the overloads of the operator."""

for _name, (_operator, _overloads) in REDUCTIONS.items():
    torch_operator(*(f"{_name}.{_overload}" for _overload in _overloads))(_reduction(_operator))


@torch_operator("any.default", "any.dim", "any.dims")
def any_(node: TorchNode, value: SSAValue, axes: int | Sequence[int] | None = None, keepdim: bool = False) -> SSAValue:
    """Whether any element along axes is nonzero."""
    is_none = isinstance(axes, Sequence) and not axes and rank_of(value)
    along = () if is_none else axes_of(axes, rank_of(value))
    return node.tensor(reduced(node, ops.ReduceMaxOp, truth(node, value), along, keepdim))


def _numbers(node: TorchNode, value: SSAValue) -> SSAValue:
    return node.cast(value, ui8) if is_bool(element_of(value)) else value


def _position(operator: type[ops.ArgMaxOp | ops.ArgMinOp]) -> Callable[..., SSAValue]:
    def run(node: TorchNode, value: SSAValue, axis: int | None = None, keepdim: bool = False) -> SSAValue:
        if not rank_of(value):
            return node.splat(0, node.element)
        x = _numbers(node, value)
        if axis is None:
            x, axis = node.reshaped(x, (product_of(sizes_of(x)),)), 0
        return node.reshaped(node.emit(operator, x, axis=axis_of(axis, rank_of(x)), keepdims=False))

    return run


torch_operator("argmax.default")(_position(ops.ArgMaxOp))
torch_operator("argmin.default")(_position(ops.ArgMinOp))


def _extreme(
    reduction: type[ops.Reduction], position: type[ops.ArgMaxOp | ops.ArgMinOp]
) -> Callable[..., list[SSAValue]]:
    """The extreme along an axis, and its first position."""

    def run(node: TorchNode, value: SSAValue, axis: int, keepdim: bool = False) -> list[SSAValue]:
        if not rank_of(value):
            return [value, node.splat(0, *node.result(1))]
        axis = axis_of(axis, rank_of(value))
        found = node.emit(reduction, value, axes=(axis,), keepdims=keepdim)
        return [found, node.emit(position, _numbers(node, value), axis=axis, keepdims=keepdim)]

    return run


torch_operator("max.dim")(_extreme(ops.ReduceMaxOp, ops.ArgMaxOp))
torch_operator("min.dim")(_extreme(ops.ReduceMinOp, ops.ArgMinOp))

"""PyTorch's reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of


def axes_of(axes: int | Sequence[int] | None, count: int) -> tuple[int, ...]:
    """Axes counted from the front; all of them where none is said."""
    if axes is None or (not isinstance(axes, int) and not axes):
        return tuple(range(count))
    given = (axes,) if isinstance(axes, int) else axes
    return tuple(sorted(axis_of(axis, count) for axis in given)) if count else ()


def reduced(
    node: TorchNode, operator: type[ops.Reduction], value: SSAValue, axes: Sequence[int], keepdims: bool
) -> SSAValue:
    """What a reduction gives along axes; a value without axes is what it is."""
    return node.emit(operator, value, axes=tuple(axes), keepdims=keepdims) if axes else value


def _reduction(operator: type[ops.Reduction]) -> Callable[..., SSAValue]:
    def run(
        node: TorchNode, value: SSAValue, axes: int | Sequence[int] | None = None, keepdims: bool = False, **_: Any
    ) -> SSAValue:
        return reduced(node, operator, node.tensor(value), axes_of(axes, rank_of(value)), keepdims)

    return run


REDUCTIONS: Mapping[str, type[ops.Reduction]] = {
    "amax": ops.ReduceMaxOp,
    "amin": ops.ReduceMinOp,
    "max": ops.ReduceMaxOp,
    "mean": ops.ReduceMeanOp,
    "min": ops.ReduceMinOp,
    "prod": ops.ReduceProdOp,
    "sum": ops.ReduceSumOp,
}

for _name, _operator in REDUCTIONS.items():
    for _overload in ("default", "dim_IntList", "dim_int") if _name != "mean" else ("default", "dim"):
        torch_operator(f"{_name}.{_overload}")(_reduction(_operator))

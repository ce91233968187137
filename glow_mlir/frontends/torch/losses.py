"""PyTorch's gradients of classification losses."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AndOp, DivOp, EqualOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp, NotOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.slices import iota
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, wide_type

MEAN = 1
"""The reduction of losses to their mean; 0 is none, 2 is the sum."""


@torch_operator("nll_loss_backward.default", "nll_loss2d_backward.default")
def nll_loss_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    target: SSAValue,
    weight: SSAValue | None,
    reduction: int,
    ignored: int,
    total_weight: SSAValue,
) -> SSAValue:
    """
    Minus weight times gradient at the class of each target, unless the target is ignored; 0 elsewhere.

    Classes are compared with targets, which avoids a scatter. A mean is divided by the total weight.
    """
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    element, axis = wide_type(element_of(x)), 1 if rank_of(x) > 1 else 0
    column = (node.sizes[axis], *(1 for _ in node.sizes[axis + 1 :]))

    def by_sample(value: SSAValue) -> SSAValue:
        """Reshape a number for each target, or for all, to broadcast over classes."""
        sizes = sizes_of(value)
        return node.reshaped(value, (*sizes[:axis], 1, *sizes[axis:])) if len(sizes) == rank_of(x) - 1 else value

    targets = by_sample(node.cast(target, i64))
    is_class = node.emit(EqualOp, node.reshaped(iota(node, node.sizes[axis]), column), targets)
    counts = node.emit(NotOp, node.emit(EqualOp, targets, node.scalar(ignored, i64)))
    value = node.emit(NegOp, node.cast(gradient, element))
    if reduction == MEAN:
        value = node.emit(DivOp, value, node.cast(total_weight, element))
    value = by_sample(value) if rank_of(value) else value
    if weight is not None:
        value = node.emit(MulOp, value, node.reshaped(node.cast(weight, element), column))
    chosen = node.emit(WhereOp, node.emit(AndOp, is_class, counts), value, node.scalar(0, element))
    return node.cast(node.expanded(chosen), node.element)

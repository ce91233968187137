"""
Gradient operators of PyTorch, expressed as gradients of our operators, which the pass `differentiate` replaces.

A backward pass derived by PyTorch thus becomes the same code as one of ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import LessOrEqualOp, WhereOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.shapes import element_of, rank_of
from glow_mlir.frontends.torch.backward import gradients, variables
from glow_mlir.frontends.torch.convolution import convolved
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, wide_type


@torch_operator("convolution_backward.default")
def convolution_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    weight: SSAValue,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> list[SSAValue | None]:
    """The wanted gradients of a convolution with respect to input, filter and bias."""
    found: list[SSAValue | None] = [None, None, None]
    if wanted[0] or wanted[1]:
        x, weight = variables(node, x, weight)
        sources = [value for value, is_wanted in zip((x, weight), wanted, strict=False) if is_wanted]
        result = convolved(node, x, weight, None, stride, padding, dilation, transposed, output_padding, groups)
        given = gradients(node, result, gradient, *sources)
        for position in range(2):
            if wanted[position]:
                found[position] = given.pop(0)
    if wanted[2]:
        axes = [axis for axis in range(rank_of(gradient)) if axis != 1]
        found[2] = node.emit(ReduceSumOp, gradient, axes=axes, keepdims=False)
    return found


@torch_operator("threshold_backward.default")
def threshold_backward(node: TorchNode, gradient: SSAValue, value: SSAValue, threshold: float) -> SSAValue:
    """The gradient where a value is not at most a threshold, NaN included, else 0."""
    wide = wide_type(element_of(value))  # PyTorch does not round the threshold to a narrow type.
    below = node.emit(LessOrEqualOp, node.cast(value, wide), node.scalar(threshold, wide))
    return node.emit(WhereOp, below, node.tensor(0), node.tensor(gradient))

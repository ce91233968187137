"""
PyTorch's operators that compute gradients: those of our operators, which `differentiate` puts in their place.

So a backward pass that PyTorch derived becomes the same instructions as one of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import normalization as norm
from glow_mlir.dialects.glow_high.elementwise_binary import GreaterOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.backward import gradients
from glow_mlir.frontends.torch.convolution import convolved
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of


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
    """The gradients of a convolution: by its input, its filter and its bias, as far as they are wanted."""
    found: list[SSAValue | None] = [None, None, None]
    sources = [value for value, is_wanted in zip((x, weight), wanted, strict=False) if is_wanted]
    if sources:
        result = convolved(node, x, weight, None, stride, padding, dilation, transposed, output_padding, groups)
        given = gradients(node, result, gradient, *sources)
        for place in range(2):
            if wanted[place]:
                found[place] = given.pop(0)
    if wanted[2]:
        axes = [axis for axis in range(rank_of(gradient)) if axis != 1]
        found[2] = node.emit(ReduceSumOp, gradient, axes=axes, keepdims=False)
    return found


@torch_operator("_softmax_backward_data.default")
def softmax_backward(node: TorchNode, gradient: SSAValue, output: SSAValue, axis: int, *_: Any) -> SSAValue:
    """output · (gradient - Σ gradient · output)."""
    weighted = node.emit(MulOp, gradient, output)
    total = node.emit(ReduceSumOp, weighted, axes=(axis_of(axis, rank_of(output)),))
    return node.cast(node.emit(SubOp, weighted, node.emit(MulOp, output, total)), node.element)


@torch_operator("threshold_backward.default")
def threshold_backward(node: TorchNode, gradient: SSAValue, value: SSAValue, threshold: float) -> SSAValue:
    """The gradient where a value is above a threshold."""
    above = node.emit(GreaterOp, value, node.scalar(threshold, element_of(value)))
    return node.emit(WhereOp, above, node.tensor(gradient), node.tensor(0))


@torch_operator("native_layer_norm_backward.default")
def layer_norm_backward(
    node: TorchNode,
    gradient: SSAValue,
    x: SSAValue,
    shape: Sequence[int],
    mean: SSAValue,
    inverse_deviation: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    wanted: Sequence[bool],
) -> list[SSAValue | None]:
    """The gradients of a layer normalization by its input, scale and offset."""
    first = rank_of(x) - len(shape)
    centred = node.emit(SubOp, node.cast(x, element_of(mean)), mean)
    normalized = node.cast(node.emit(MulOp, centred, inverse_deviation), element_of(x))
    found: list[SSAValue | None] = [None, None, None]
    if wanted[0]:
        scale = node.splat(1, element_of(x), sizes_of(x)[first:]) if weight is None else node.cast(weight, element_of(x))
        result = node.emit(norm.LayerNormalizationOp, x, scale, axis=first, epsilon=1e-5)
        (found[0],) = gradients(node, result, gradient, x)
    outer = tuple(range(first))
    if wanted[1]:
        found[1] = node.emit(ReduceSumOp, node.emit(MulOp, gradient, normalized), axes=outer, keepdims=False)
    if wanted[2]:
        found[2] = node.emit(ReduceSumOp, gradient, axes=outer, keepdims=False)
    return found

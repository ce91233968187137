"""PyTorch's convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode


def convolved(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> SSAValue:
    """A convolution or a transposed one, by one number for all spatial axes or one for each."""
    count = len(sizes_of(x)) - 2
    stride, padding, dilation, output_padding = (
        tuple(item) * count if len(item) == 1 else tuple(item) for item in (stride, padding, dilation, output_padding)
    )
    if not transposed:
        result = node.emit(
            ConvOp,
            to_channels_last(node, x),
            to_channels_last(node, weight),
            bias,
            strides=stride,
            pads=(*padding, *padding),
            dilations=dilation,
            group=groups,
        )
        return to_channels_first(node, result)
    result = node.emit(
        ConvTransposeOp,
        to_channels_last(node, x),
        to_channels_last(node, weight),
        bias,
        strides=stride,
        pads=(*padding, *padding),
        dilations=dilation,
        output_padding=output_padding,
        group=groups,
    )
    return to_channels_first(node, result)


@torch_operator("convolution.default")
def convolution(
    node: TorchNode,
    x: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> SSAValue:
    """A channels-last convolution between transposes."""
    return convolved(node, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)

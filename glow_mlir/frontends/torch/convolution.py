"""PyTorch's convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, wide_type


@torch_operator("convolution.default")
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
    """
    A channels-last convolution or transposed convolution, between transposes.

    Settings of spatial axes are one number for all, or one for each.
    """
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
    # Its lowering adds several products, each of which would be rounded in 16-bit floats.
    element = wide_type(element_of(x)) if is_float(element_of(x)) else element_of(x)
    operands = [to_channels_last(node, node.cast(value, element)) for value in (x, weight)]
    result = node.emit(
        ConvTransposeOp,
        *operands,
        None if bias is None else node.cast(bias, element),
        strides=stride,
        pads=(*padding, *padding),
        dilations=dilation,
        output_padding=output_padding,
        group=groups,
    )
    return node.cast(to_channels_first(node, result), element_of(x))

"""PyTorch's pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolWithIndicesOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode


def pooled(
    node: TorchNode,
    operator: type[HighOp],
    x: SSAValue,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
    **properties: Any,
) -> list[SSAValue]:
    """What an operator makes of windows; [C, spatial…] is a batch of one."""
    count = len(kernel)
    stride = stride or kernel
    stride, padding, dilation = (
        tuple(item) * count if len(item) == 1 else tuple(item) for item in (stride, padding, dilation)
    )
    is_alone = rank_of(x) == count + 1
    batch = node.reshaped(x, (1, *sizes_of(x))) if is_alone else x
    results = node.emit_all(
        operator,
        to_channels_last(node, batch),
        kernel_shape=tuple(kernel),
        strides=stride,
        pads=(*padding, *padding),
        dilations=dilation,
        ceil_mode=ceil_mode,
        **properties,
    )
    found = [to_channels_first(node, result) for result in results]
    return [node.reshaped(item, sizes_of(item)[1:]) if is_alone else item for item in found]


@torch_operator("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool_with_indices(
    node: TorchNode,
    x: SSAValue,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> list[SSAValue]:
    """The largest element of each window, and its place within its channel."""
    count = len(node.sizes) - (1 if len(node.sizes) % 2 else 2)
    kernel = tuple(kernel) * (2 if "2d" in node.kind else 3) if len(kernel) == 1 else kernel
    values, indices = pooled(node, MaxPoolWithIndicesOp, x, kernel, stride, padding, dilation, ceil_mode)
    del count
    return [values, indices]


@torch_operator("avg_pool2d.default", "avg_pool1d.default", "avg_pool3d.default")
def avg_pool(
    node: TorchNode,
    x: SSAValue,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> SSAValue:
    """The mean of each window."""
    if divisor is not None:
        raise node.unsupported("a divisor of windows")
    count = int(node.kind.partition("pool")[2][0])
    kernel = tuple(kernel) * count if len(kernel) == 1 else kernel
    (result,) = pooled(
        node, AvgPoolOp, x, kernel, stride, padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad
    )
    return result


@torch_operator("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_avg_pool1d.default")
def adaptive_avg_pool(node: TorchNode, x: SSAValue, shape: Sequence[int]) -> SSAValue:
    """The mean of as many windows as are asked for."""
    if all(size == 1 for size in shape):
        return node.emit(ReduceMeanOp, x, axes=tuple(range(rank_of(x) - len(shape), rank_of(x))))
    sizes = sizes_of(x)[-len(shape) :]
    if not all(isinstance(size, int) and size % wanted == 0 for size, wanted in zip(sizes, shape, strict=True)):
        raise node.unsupported("windows of different sizes")
    kernel = [int(size) // wanted for size, wanted in zip(sizes, shape, strict=True)]  # pyright: ignore
    (result,) = pooled(node, AvgPoolOp, x, kernel, kernel, (0,))
    return result

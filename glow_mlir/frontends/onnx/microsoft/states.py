"""onnxruntime's operators that pass a state from one call to the next: convolutions and linear attention."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SwishOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.shapes import rank_of, size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.attention import linear_attention as standard_linear_attention
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import product_of


@onnx_operator("LinearAttention", domain=ONNXRUNTIME)
def linear_attention(node: Node) -> Sequence[SSAValue]:
    """ONNX's LinearAttention; only the last state is kept."""
    _check_window(node)
    return standard_linear_attention(node)


def _check_window(node: Node) -> None:
    """Raise `UnsupportedError` if states of several tokens are kept."""
    if node.int("state_window", 0):
        raise node.unsupported("states of several tokens (state_window) are not supported")


@onnx_operator("CausalConvWithState", domain=ONNXRUNTIME)
def causal_conv_with_state(node: Node) -> Sequence[SSAValue]:
    """
    A causal depthwise convolution; the second result has the last positions, as state for a later call.

    The state is prepended to the input; without one, zeros are.
    """
    _check(node)
    is_last, dilation = node.flag("channels_last"), node.int("dilation", 1)
    image, past = (None if value is None else _as_channels_last(node, value) for value in _values(node))
    assert image is not None
    weights = node.input(1)
    channels, *kernel = (size_along(weights, axis) for axis in (0, *range(2, rank_of(weights))))
    reach = (kernel[-1] - 1) * dilation
    axis = rank_of(image) - 2
    if past is None:
        sizes = sizes_of(image)
        past = node.splat(0.0, image, (*sizes[:axis], reach, *sizes[axis + 1 :]))
    whole = node.emit(ConcatOp, [past, image], axis=axis)
    spatial = len(kernel)
    around = [(size - 1) // 2 for size in kernel[:-1]], [size // 2 for size in kernel[:-1]]
    result = node.emit(
        ConvOp,
        whole,
        to_channels_last(node, weights),
        node.optional(2),
        strides=[1] * spatial,
        pads=[*around[0], 0, *around[1], 0],
        dilations=[*[1] * (spatial - 1), dilation],
        group=channels,
    )
    if node.text("activation", "none") != "none":
        result = node.emit(SwishOp, result)
    length = sizes_of(whole)[axis]
    state = cut(node, whole, {axis: (length - reach, length)})
    if is_last:
        shape = sizes_of(state)[:2] + node.sizes()[2:]
        return node.emit(ReshapeOp, result, shape=node.sizes()), node.emit(ReshapeOp, state, shape=shape)
    return to_channels_first(node, result), to_channels_first(node, state)


_EXTENDED = {"state_length": 0, "state_channels_last": -1, "state_update_capacity": 0, "input_channels": 0}
_EXTENDED["input_channel_offset"] = 0
"""Attributes of features that onnxruntime has on GPUs only → their default values."""


def _check(node: Node) -> None:
    """Raise an error if operands do not fit, or the form of the node is not supported."""
    _check_window(node)
    if any(node.int(name, plain) != plain for name, plain in _EXTENDED.items()):
        raise node.unsupported("states of other lengths and channels of slices are not supported")
    if (name := node.text("activation", "none")) not in ("none", "silu", "swish"):
        raise node.unsupported(f"the activation '{name}' is not supported, only silu, swish and none")
    axes = node.int("ndim", 1)
    node.check_rank(1, (axes + 2,), "the weights are [channels, 1, kernel…], with ndim sizes")
    is_last = node.flag("channels_last")
    if not is_last:
        node.check_rank(0, (axes + 2,), "the input is [batch, channels, …], with ndim sizes")
    node.check_rank(3, (node.rank(),), "the state has the axes of the input")
    channels = product_of(node.sizes()[2:] if is_last else node.sizes()[1:2])
    if node.rank() < 3 or (is_last and axes != 1) or channels != node.sizes(1)[0] or min(node.shape(1)) < 1:
        reason = f"{node.kind}: weights {node.sizes(1)} do not fit an input {node.sizes()}"
        raise ModelError(reason, node=node.name, hint="there is a kernel for each channel")
    reach = (node.shape(1)[-1] - 1) * node.int("dilation", 1)
    position = 1 if is_last else node.rank() - 1
    if node.int("dilation", 1) < 1 or (node.optional(3) is not None and node.sizes(3)[position] != reach):
        reason = f"{node.kind}: a state of shape {node.sizes(3)} does not have {reach} positions"
        raise ModelError(reason, node=node.name, hint="it has (kernel - 1) * dilation of them")


def _values(node: Node) -> tuple[SSAValue, SSAValue | None]:
    """The input and the state."""
    return node.input(0), node.optional(3)


def _as_channels_last(node: Node, value: SSAValue) -> SSAValue:
    """Convert a value to [batch, …, channels], with a single axis of channels."""
    if not node.flag("channels_last"):
        return to_channels_last(node, value)
    batch, length, *rest = sizes_of(value)
    return node.emit(ReshapeOp, value, shape=(batch, length, product_of(rest)))

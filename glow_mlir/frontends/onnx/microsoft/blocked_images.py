"""onnxruntime's operators on images with blocked channels (domain com.microsoft.nchwc), imported without blocks."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import reductions
from glow_mlir.dialects.glow_high.data_movement import PadOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolOp
from glow_mlir.dialects.shapes import rank_of, size_along
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.microsoft.activations import activated
from glow_mlir.frontends.onnx.microsoft.blocked_layout import BLOCKED, BlockedLayout, blocked_layout, is_depthwise
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.convolution import convolved
from glow_mlir.frontends.onnx.operators.pooling import pool
from glow_mlir.frontends.onnx.operators.reductions import global_pool
from glow_mlir.frontends.onnx.operators.resize import resized
from glow_mlir.ir.registry import onnx_operator

IMAGE = "images are [batch, channels, height, width]"


@onnx_operator("ReorderInput", domain=BLOCKED)
def reorder_input(node: Node) -> SSAValue:
    """The needed channels of an image; additional channels, up to whole blocks, are 0."""
    node.check_rank(0, (4,), IMAGE)
    layout = node.finding(blocked_layout)
    value = to_channels_first(node, node.input()) if node.flag("channels_last") else node.input()
    channels = size_along(value, 1)
    whole = -(-channels // layout.block) * layout.block
    wanted = min(_needed(node, layout), whole)
    if wanted > channels:
        return node.emit(PadOp, value, pads=(0, 0, 0, 0, 0, wanted - channels, 0, 0))
    return cut(node, value, {1: (0, wanted)})


@onnx_operator("ReorderOutput", domain=BLOCKED)
def reorder_output(node: Node) -> SSAValue:
    """The channels of an image, without those that pad blocks."""
    node.check_rank(0, (4,), IMAGE)
    channels, there = node.int("channels"), size_along(node.input(), 1)
    if not 0 < channels <= there:
        hint = "the attribute channels is at most the image's number of channels"
        raise ModelError(f"{node.kind}: {channels} channels of {there}", node=node.name, hint=hint)
    value = cut(node, node.input(), {1: (0, channels)})
    return to_channels_last(node, value) if node.flag("channels_last") else value


def _needed(node: Node, layout: BlockedLayout) -> int:
    """The number of leading channels of the result that are needed."""
    return layout.channels[node.results[0]]


@onnx_operator("Conv", domain=BLOCKED)
def conv(node: Node) -> SSAValue:
    """A convolution with constant filters, an optional summand, and an optional activation."""
    node.check_rank(0, (4,), IMAGE)
    layout = node.finding(blocked_layout)
    filters = layout.unpacked(node.content(1, "the filters"))
    if filters is None:
        hint = f"there are whole blocks of {layout.block} filters, as onnxruntime writes them for the same processor"
        raise ModelError(f"{node.kind}: filters of shape {node.shape(1)} are not in blocks", node=node.name, hint=hint)
    outputs = min(_needed(node, layout), len(filters))
    there, group = size_along(node.input(), 1), node.int("group", 1)
    if is_depthwise(filters.shape, group):
        group = outputs
    elif group == 1:
        filters = filters[:, :there]
    weights = node.constant(np.ascontiguousarray(filters[:outputs]))
    bias = node.optional(2)
    if bias is not None:
        node.check_rank(2, (1,), "there is a number for each filter")
        bias = cut(node, bias, {0: (0, outputs)})
    result, addend = convolved(node, node.input(), weights, bias, group=group), node.optional(3)
    return activated(node, result if addend is None else node.emit(AddOp, result, addend))


@onnx_operator("MaxPool", domain=BLOCKED)
def max_pool(node: Node) -> SSAValue:
    """The maximum of each window."""
    node.check_rank(0, (4,), IMAGE)
    return pool(node, MaxPoolOp, node.input())


@onnx_operator("AveragePool", domain=BLOCKED)
def average_pool(node: Node) -> SSAValue:
    """The mean of each window."""
    node.check_rank(0, (4,), IMAGE)
    return pool(node, AvgPoolOp, node.input(), count_include_pad=node.flag("count_include_pad"))


for _name, _operator in {
    "GlobalAveragePool": reductions.ReduceMeanOp,
    "GlobalMaxPool": reductions.ReduceMaxOp,
}.items():
    onnx_operator(_name, domain=BLOCKED)(global_pool(_operator))


@onnx_operator("Upsample", domain=BLOCKED)
def upsample(node: Node) -> SSAValue:
    """Resize an image by integer scales."""
    scales = node.ints("scales", (1,) * rank_of(node.input()))
    if len(scales) != node.rank() or min(scales, default=0) < 1:
        hint = "there is an integer from 1 on for each axis"
        raise ModelError(f"{node.kind}: scales {list(scales)} do not fit", node=node.name, hint=hint)
    coordinates, mode = node.text("coordinate_transformation_mode", "asymmetric"), node.text("mode", "nearest")
    rules = ("nearest", "floor", "asymmetric") if mode == "nearest" else (mode, "floor", coordinates)
    return resized(node, node.input(), [float(scale) for scale in scales], *rules)

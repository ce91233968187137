"""ONNX's operators that sample images at places that operands tell."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.sampling import GridSampleOp
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.spatial import to_channels_first, to_channels_last
from glow_mlir.ir.registry import onnx_operator

_OLD_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
"""What the modes were called before opset 20."""


def _grid_sample(node: Node, mode: str) -> SSAValue:
    result = node.emit(
        GridSampleOp,
        to_channels_last(node, node.input()),
        node.input(1),
        mode=mode,
        padding=node.text("padding_mode", "zeros"),
        align_corners=node.flag("align_corners"),
    )
    return to_channels_first(node, result)


@onnx_operator("GridSample", since=16)
def grid_sample_of_images(node: Node) -> SSAValue:
    """Images of two axes."""
    word = node.text("mode", "bilinear")
    if word not in _OLD_MODES:
        hint = f"opset {node.version} has {', '.join(_OLD_MODES)}"
        raise ModelError(f"GridSample: mode '{word}' does not exist", node=node.name, hint=hint)
    return _grid_sample(node, _OLD_MODES[word])


@onnx_operator("GridSample", since=20)
def grid_sample(node: Node) -> SSAValue:
    """Images of any number of axes."""
    return _grid_sample(node, node.text("mode", "linear"))

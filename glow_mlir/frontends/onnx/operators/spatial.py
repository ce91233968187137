"""Kernel shapes and padding of ONNX's spatial operators."""

from __future__ import annotations

from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.sizes import HINT, largest, smallest
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.onnx.node import Node


def kernel_shape(node: Node, weights: int = 1) -> Shape:
    """
    The spatial sizes of the weights, the operand at position `weights`.

    Raises `ModelError` if their rank differs from the input's, or if the attribute `kernel_shape` differs.
    """
    shape = node.shape(weights)
    if len(shape) != node.rank():
        hint = "both are […, …, spatial…]"
        reason = f"{node.kind}: an input of shape {node.sizes()} and weights of shape {shape} do not fit"
        raise ModelError(reason, node=node.name, hint=hint)
    if (declared := node.ints("kernel_shape", shape[2:])) != shape[2:]:
        reason = f"{node.kind}: kernel_shape is {list(declared)}, but the weights have the shape {shape}"
        raise ModelError(reason, node=node.name, hint="kernel_shape has the spatial sizes of the weights")
    return shape[2:]


def padding(node: Node, kernel: Shape, strides: Shape, dilations: Shape, is_last: bool = False) -> Shape:
    """
    All leading paddings, then all trailing ones, from `pads` or `auto_pad`.

    The first operand is channels-first, or channels-last if `is_last`.
    """
    rank = len(kernel)
    mode = node.text("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        return node.ints("pads", (0,) * (2 * rank)) if mode == "NOTSET" else (0,) * (2 * rank)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"{node.kind}: auto_pad '{mode}' does not exist", node=node.name)
    before: list[int] = []
    after: list[int] = []
    for axis, size in enumerate(node.sizes()[1:-1] if is_last else node.sizes()[2:]):
        extent, stride = (kernel[axis] - 1) * dilations[axis] + 1, strides[axis]
        needed = ((size + (stride - 1)) // stride - 1) * stride + extent - size
        if smallest(needed) != largest(needed):
            reason = f"auto_pad '{mode}' by steps of {stride} pads an axis of {size} elements differently for each size"
            raise UnsupportedError(f"{node.kind}: {reason}", node=node.name, hint=HINT)
        total = max(0, smallest(needed))
        small, large = total // 2, total - total // 2
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return (*before, *after)

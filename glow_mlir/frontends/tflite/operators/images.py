"""Pools, and images of other sizes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.activations import activated
from glow_mlir.frontends.tflite.operators.products import SAME, same_pads


@tflite_operator("MAX_POOL_2D", "AVERAGE_POOL_2D")
def pool_2d(node: TfliteNode) -> SSAValue:
    """The largest element, or the mean, of windows of [N, H, W, C]; the border does not count."""
    options = node.options
    strides, kernel = ([node.step(field) for field in fields] for fields in ((2, 1), (4, 3)))
    is_same = options.number(0, "b") == SAME
    pads = same_pads(node.image(0)[1:3], kernel, strides, (1, 1)) if is_same else [0] * 4
    form = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if node.kind == "AVERAGE_POOL_2D":
        if not node.is_float():
            raise node.unsupported("of integers is not supported")
        return activated(node, node.emit(AvgPoolOp, node.input(0), **form), node.activation)
    if not node.is_float() and node.activation != "none":
        raise node.unsupported("of integers with an activation function is not supported")
    found = node.emit(MaxPoolOp, node.input(0), **form)
    return activated(node, found, node.activation) if node.is_float() else found


@tflite_operator("RESIZE_BILINEAR")
def resize_bilinear(node: TfliteNode) -> SSAValue:
    """An image [N, H, W, C] in another size, by linear interpolation."""
    if not node.is_float():
        raise node.unsupported("of integers is not supported")
    is_aligned, has_centers = (bool(node.options.number(field, "?")) for field in (2, 3))
    rule = "align_corners" if is_aligned else "half_pixel" if has_centers else "asymmetric"
    return resized(node, "linear", rule)


def resized(node: TfliteNode, mode: str, rule: str) -> SSAValue:
    """An image in the size of the result."""
    return node.emit(ResizeOp, node.input(0), shape=node.output().shape, mode=mode, coordinates=rule)

"""Early experimental operators of ONNX's domain, some never standardized; onnxruntime has them up to opset 9."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SoftplusOp, TanhOp
from glow_mlir.dialects.glow_high.data_movement import SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.reductions import standardized
from glow_mlir.ir.registry import onnx_operator


def _times(node: Node, value: SSAValue, factor: float) -> SSAValue:
    return value if factor == 1.0 else node.emit(MulOp, value, node.constant(factor, like=value))


@onnx_operator("Affine")
def affine(node: Node) -> SSAValue:
    """alpha · x + beta."""
    result = _times(node, node.input(), node.float("alpha", 1.0))
    return node.emit(AddOp, result, node.constant(node.float("beta", 0.0), like=result))


@onnx_operator("Scale")
def scale(node: Node) -> SSAValue:
    """scale · x."""
    return _times(node, node.input(), node.float("scale", 1.0))


@onnx_operator("ImageScaler")
def image_scaler(node: Node) -> SSAValue:
    """scale · x + bias, with a bias for each channel (axis 1)."""
    node.check_rank(0, (4,), "an image is [N, C, H, W]")
    result, bias = _times(node, node.input(), node.float("scale", 1.0)), node.floats("bias", ())
    if len(bias) != node.sizes()[1]:
        reason = f"ImageScaler: {len(bias)} biases for {node.sizes()[1]} channels"
        raise ModelError(reason, node=node.name)
    return node.emit(AddOp, result, node.constant(np.reshape(bias, (-1, 1, 1)), like=result))


@onnx_operator("ParametricSoftplus")
def parametric_softplus(node: Node) -> SSAValue:
    """alpha · log(1 + exp(beta · x))."""
    inner = _times(node, node.input(), node.float("beta"))
    return _times(node, node.emit(SoftplusOp, inner), node.float("alpha"))


@onnx_operator("ScaledTanh")
def scaled_tanh(node: Node) -> SSAValue:
    """alpha · tanh(beta · x)."""
    inner = _times(node, node.input(), node.float("beta"))
    return _times(node, node.emit(TanhOp, inner), node.float("alpha"))


@onnx_operator("Crop")
def crop(node: Node) -> SSAValue:
    """
    Crop an image by `border`, the number of elements to the left, top, right and bottom.

    With `scale`, the result has that height and width, and starts at the left and top border.
    """
    node.check_rank(0, (4,), "an image is [N, C, H, W]")
    border, scale_ = node.ints("border", ()), node.ints("scale", ())
    if len(border) != 4 or len(scale_) not in (0, 2):
        hint = "border is left, top, right and bottom, scale height and width"
        raise ModelError(f"Crop: border is {list(border)}, scale {list(scale_)}", node=node.name, hint=hint)
    (left, top, right, bottom), (*outer, height, width) = border, node.sizes()
    ends = (top + scale_[0], left + scale_[1]) if scale_ else (height - bottom, width - right)
    starts, rank = (0, 0, top, left), rank_of(node.input())
    return node.emit(SliceOp, node.input(), starts=starts, ends=(*outer, *ends), steps=(1,) * rank)


@onnx_operator("MeanVarianceNormalization")
def mean_variance_normalization(node: Node) -> SSAValue:
    """
    Normalize each channel over the batch, or all elements `across_channels`.

    Without `normalize_variance`, only the mean is subtracted.
    """
    node.check_rank(0, (4,), "an image is [N, C, H, W]")
    axes = (0, 1, 2, 3) if node.flag("across_channels") else (0, 2, 3)
    return standardized(node, axes, node.flag("normalize_variance", True))

"""PyTorch's activation functions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor, expm1, where
from glow_mlir.dialects.glow_high import activations as ops
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.torch.formulas import computed
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode


@torch_operator("gelu.default")
def gelu(node: TorchNode, value: SSAValue, *, approximate: str = "none") -> SSAValue:
    """x · Φ(x)."""
    return node.emit(ops.GeluOp, value, approximate=approximate)


@torch_operator("leaky_relu.default")
def leaky_relu(node: TorchNode, value: SSAValue, slope: float = 0.01) -> SSAValue:
    """x, or slope · x below 0."""
    return node.emit(ops.LeakyReluOp, value, alpha=slope)


@torch_operator("silu.default")
def silu(node: TorchNode, value: SSAValue) -> SSAValue:
    """x · sigmoid(x)."""
    return node.emit(ops.SwishOp, value, alpha=1.0)


@torch_operator("hardswish.default")
def hardswish(node: TorchNode, value: SSAValue) -> SSAValue:
    """x · min(max(x + 3, 0), 6) / 6."""
    return node.emit(ops.HardSwishOp, value)


@torch_operator("hardsigmoid.default")
def hardsigmoid(node: TorchNode, value: SSAValue) -> SSAValue:
    """min(max(x + 3, 0), 6) / 6."""
    return node.emit(ops.HardSigmoidOp, value, alpha=1 / 6, beta=0.5)


@torch_operator("elu.default")
def elu(node: TorchNode, value: SSAValue, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> SSAValue:
    """scale · x, or scale · alpha · (exp(input_scale · x) - 1) below 0."""

    def formula(x: Tensor) -> Tensor:
        return where(x > 0.0, x * scale, expm1(x * float(input_scale)) * (alpha * scale))

    return computed(node, formula, value)


@torch_operator("softplus.default")
def softplus(node: TorchNode, value: SSAValue, beta: float = 1, threshold: float = 20) -> SSAValue:
    """log(1 + exp(beta · x)) / beta, or x if beta · x is above a threshold."""
    element = node.wide
    scaled = node.value(node.of(value, element) * float(beta))
    smooth = node.formulas.of(node.emit(ops.SoftplusOp, scaled)) / float(beta)
    found = where(node.formulas.of(scaled) > float(threshold), node.of(value, element), smooth)
    return node.cast(node.value(found), element_of(value))

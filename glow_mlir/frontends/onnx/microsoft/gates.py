"""onnxruntime's gated operators, computed in f32 up to the last step."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.activations import SigmoidOp, SoftplusOp, SwishOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, MinOp, MulOp
from glow_mlir.dialects.glow_high.normalization import RmsNormalizationOp
from glow_mlir.dialects.shapes import element_of, size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator


def _wide(node: Node, value: SSAValue) -> SSAValue:
    """Convert a value to f32 if it is narrower."""
    return node.cast(value, f32) if byte_width(element_of(value)) < 4 else value


@onnx_operator("GatedRMSNorm", domain=ONNXRUNTIME)
def gated_rms_norm(node: Node) -> SSAValue:
    """RMS normalization of groups of elements, times the activation of a gate; a group has an element per scale."""
    node.check_rank(1, (1,), "there is a scale for each element of a group")
    value, scale, gate = (_wide(node, node.input(position)) for position in range(3))
    groups = _grouped(node, value, size_along(scale, 0))
    normal = node.emit(RmsNormalizationOp, groups, scale, epsilon=node.float("epsilon", 1e-5))
    normal = node.emit(ReshapeOp, normal, shape=node.sizes())
    return node.cast(node.emit(MulOp, normal, _activated(node, gate)), node.element())


def _grouped(node: Node, value: SSAValue, size: int) -> SSAValue:
    """Split the last axis into groups; raises `ModelError` if it is not a multiple of their size."""
    *rows, width = sizes_of(value)
    if not rows or size < 1 or size_along(value, -1) % size:
        hint = "the last axis is a multiple of the scales"
        raise ModelError(f"{node.kind}: {width} elements do not fill groups of {size}", node=node.name, hint=hint)
    return node.emit(ReshapeOp, value, shape=(*rows, size_along(value, -1) // size, size))


def _activated(node: Node, gate: SSAValue) -> SSAValue:
    """Apply the activation of a gate."""
    name = node.text("activation", "silu")
    if name in ("silu", "swish"):
        return node.emit(SwishOp, gate)
    if name == "sigmoid":
        return node.emit(SigmoidOp, gate)
    raise node.unsupported(f"the activation '{name}' is not supported, only silu, swish and sigmoid")


@onnx_operator("GatedAdd", domain=ONNXRUNTIME)
def gated_add(node: Node) -> SSAValue:
    """X + Y · gate, with a gate for each row."""
    if node.optional(3) is not None:
        raise node.unsupported("projected gates are not supported")
    return node.emit(AddOp, node.input(0), node.emit(MulOp, node.input(1), node.input(2)))


@onnx_operator("ScaledSiLU", domain=ONNXRUNTIME)
def scaled_silu(node: Node) -> SSAValue:
    """z · sigmoid(z) with z = scale · x, each step rounded."""
    scale, value = node.optional(1), node.input()
    if scale is None:
        factor = node.splat(node.float("alpha", 1.0), f32)
    else:
        factor = node.cast(node.emit(ReshapeOp, scale, shape=()), f32)
    scaled = node.cast(node.emit(MulOp, node.cast(value, f32), factor), node.element())
    return node.emit(MulOp, scaled, node.emit(SigmoidOp, scaled))


@onnx_operator("SwiGLU", domain=ONNXRUNTIME)
def swiglu(node: Node) -> SSAValue:
    """gate · sigmoid(alpha · gate) · (value + beta), both clamped; gate and value may be halves of one operand."""
    gate, value = _halves(node)
    if (limit := node.float("limit", 0.0)) > 0:
        low, high = node.splat(-limit, gate), node.splat(limit, gate)
        gate, value = node.emit(MinOp, gate, high), node.emit(ClipOp, value, low, high)
    if beta := node.float("activation_beta", 0.0):
        value = node.emit(AddOp, value, node.splat(beta, value))
    result = node.emit(SwishOp, gate, alpha=node.float("activation_alpha", 1.0))
    if node.flag("round_activation"):
        result = _wide(node, node.cast(result, node.element()))
    return node.cast(node.emit(MulOp, result, value), node.element())


def _halves(node: Node) -> tuple[SSAValue, SSAValue]:
    """Gates and values."""
    gate, value = _wide(node, node.input(0)), node.optional(1)
    if value is not None:
        return gate, _wide(node, value)
    last, half = node.rank() - 1, size_along(gate, -1) // 2 if node.rank() else 0
    if not node.rank() or size_along(gate, -1) != 2 * half:
        raise ModelError(f"{node.kind}: an operand of shape {node.sizes()} cannot be halved", node=node.name)
    return cut(node, gate, {last: (0, half)}), cut(node, gate, {last: (half, 2 * half)})


@onnx_operator("LinearAttentionGate", domain=ONNXRUNTIME)
def linear_attention_gate(node: Node) -> Sequence[SSAValue | None]:
    """The decay of a state, scale · softplus(a + bias), and the sigmoid of its update."""
    value = node.emit(SoftplusOp, node.emit(AddOp, node.cast(node.input(0), f32), node.input(1)))
    decay = node.cast(node.emit(MulOp, value, node.input(2)), node.element())
    update = node.optional(3)
    return decay, None if update is None else node.emit(SigmoidOp, update)

"""onnxruntime's mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import GeluOp, ReluOp, SwishOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, MinOp, MulOp
from glow_mlir.dialects.glow_high.linear import GroupedMatMulOp
from glow_mlir.dialects.shapes import shape_of, size_along, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.experts import Routing, grouped_mixture
from glow_mlir.frontends.builder.slices import cut, part_of
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import product_of

_ACTIVATIONS: dict[str, tuple[type[HighOp] | None, dict[str, str]]] = {
    "relu": (ReluOp, {}),
    "gelu": (GeluOp, {"approximate": "tanh"}),
    "silu": (SwishOp, {}),
    "identity": (None, {}),
}
"""Name → operator and properties."""

SWIGLU = "swiglu"
APART, INTERLEAVED, JOINED = range(3)
"""The layout of gates and gated values in the columns of the first product (`swiglu_fusion`)."""


@onnx_operator("MoE", domain=ONNXRUNTIME)
def moe(node: Node) -> SSAValue:
    """Two products with an activation between them, or three; operands are input, router, then fc1 to fc3 with bias."""
    for position, (rank, hint) in _AXES.items():
        node.check_rank(position, (rank,), hint)

    def product(rows: SSAValue, numbers: SSAValue, weights: int) -> SSAValue:
        bias = node.optional(weights + 1)
        return node.emit(GroupedMatMulOp, rows, node.input(weights), numbers, bias, transpose_weights=True)

    def experts(rows: SSAValue, numbers: SSAValue) -> SSAValue:
        further = None if node.optional(6) is None else product(rows, numbers, 6)
        return product(activated(node, product(rows, numbers, 2), further), numbers, 4)

    def all_results(rows: SSAValue, routing: Routing, width: int) -> SSAValue:
        return grouped_mixture(node, rows, routing, experts, width)

    return mixed(node, all_results, shape_of(node.input(2))[0])


_AXES = {
    1: (2, "there is a row of scores for each token"),
    **dict.fromkeys((2, 4, 6), (3, "weights are [experts, columns, elements]")),
    **dict.fromkeys((3, 5, 7), (2, "biases are [experts, columns]")),
}
"""Position of an operand of MoE → its rank, and a description of its axes."""


Mixture = Callable[[SSAValue, Routing, int], SSAValue]
"""Rows, their experts, and the result's width → the sum of the experts' results, weighted by their shares."""


def mixed(
    node: Node, mixture: Mixture, count: int, shares: SSAValue | None = None, is_normalized: bool = False
) -> SSAValue:
    """Apply a mixture of `count` experts to the rows of the input, which has rank 2 or 3."""
    if node.flag("use_sparse_mixer"):
        raise node.unsupported("a sparse mixer is not supported")
    node.check_rank(0, (2, 3), "the input is [tokens, elements] or [batch, length, elements]")
    k, experts = node.int("k", 1), size_along(node.input(1), 1)
    if experts != count or not 0 < k <= experts:
        reason = f"{node.kind}: scores of {experts} experts do not fit weights of {count}, of which {k} are chosen"
        raise ModelError(reason, node=node.name, hint="expected one score for each expert, and k up to their number")
    *tokens, width = sizes_of(node.input())
    rows = node.emit(ReshapeOp, node.input(), shape=(product_of(tokens), width)) if len(tokens) > 1 else node.input()
    is_whole = node.flag("normalize_routing_weights") or (is_normalized and shares is None)
    routing = Routing.of(node, node.input(1), k, is_whole, shares)
    result = node.cast(mixture(rows, routing, size_along(node.input(), -1)), node.element())
    return node.emit(ReshapeOp, result, shape=sizes_of(node.input())) if len(tokens) > 1 else result


def activated(node: Node, value: SSAValue, further: SSAValue | None) -> SSAValue:
    """Apply the node's activation to the first product of an expert, which gates the third product, if any."""
    name = node.text("activation_type", "relu")
    if name == SWIGLU:
        return _gated(node, *_gates(node, value, further))
    if name not in _ACTIVATIONS:
        raise node.unsupported(f"the activation '{name}' is not supported, only {', '.join([*_ACTIVATIONS, SWIGLU])}")
    operator, properties = _ACTIVATIONS[name]
    result = value if operator is None else node.emit(operator, value, **properties)
    return result if further is None else node.emit(MulOp, result, further)


def _gates(node: Node, value: SSAValue, further: SSAValue | None) -> tuple[SSAValue, SSAValue]:
    """Gates, and gated values."""
    layout, (rows, width) = node.int("swiglu_fusion", 0), sizes_of(value)
    if (layout == APART) != (further is not None) or not APART <= layout <= JOINED or size_along(value, 1) % 2 > layout:
        hint = "with swiglu_fusion 0 there is a third weight, with 1 or 2 gates are half of the columns"
        raise ModelError(f"{node.kind}: {width} columns do not fit swiglu_fusion", node=node.name, hint=hint)
    if further is not None:
        return value, further
    half = size_along(value, 1) // 2
    if layout == JOINED:
        return cut(node, value, {1: (0, half)}), cut(node, value, {1: (half, 2 * half)})
    pairs = node.emit(ReshapeOp, value, shape=(rows, half, 2))
    return part_of(node, pairs, 0, 2), part_of(node, pairs, 1, 2)


def _gated(node: Node, gate: SSAValue, value: SSAValue) -> SSAValue:
    """gate · sigmoid(alpha · gate) · (value + beta), with gate and value clamped."""
    if node.flag("swiglu_limit_after_activation"):
        raise node.unsupported("limits after the activation are not supported")
    if node.has("swiglu_limit"):
        limit = node.float("swiglu_limit")
        high, low = node.splat(limit, gate), node.splat(-limit, gate)
        gate, value = node.emit(MinOp, gate, high), node.emit(ClipOp, value, low, high)
    if beta := node.float("activation_beta", 0.0):
        value = node.emit(AddOp, value, node.splat(beta, value))
    return node.emit(MulOp, node.emit(SwishOp, gate, alpha=node.float("activation_alpha", 1.0)), value)

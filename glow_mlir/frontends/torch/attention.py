"""PyTorch's attention operators."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceLogSumExpOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.builder.attention import Groups, added_causally, added_to_scores, sees_nothing
from glow_mlir.frontends.torch.backward import gradients, variables
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, wide_type
from glow_mlir.frontends.torch.recurrent import LIBRARY
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values of attention, in the type of computation, grouped into heads that share keys."""

    query: SSAValue
    key: SSAValue
    value: SSAValue
    mask: SSAValue | None
    groups: Groups
    scale: float
    causal: bool

    @staticmethod
    def of(
        node: TorchNode,
        query: SSAValue,
        key: SSAValue,
        value: SSAValue,
        mask: SSAValue | None,
        causal: bool,
        scale: float | None,
    ) -> Heads:
        """Heads of [batch…, heads, length, elements]; raises `UnsupportedError` if queries cannot share keys evenly."""
        element = wide_type(element_of(query))
        groups = _groups(node, query, key)
        query, key, value = (node.cast(operand, element) for operand in (query, key, value))
        if mask is not None:
            mask = groups.split(node, node.cast(added_to_scores(node, mask, query), element))
        operands = groups.split(node, query), groups.apart(node, key), groups.apart(node, value)
        depth = sizes_of(query)[-1]
        if scale is None and not isinstance(depth, int):
            raise node.unsupported("a scale that depends on a size known at run time only")
        usual = 1 / math.sqrt(depth) if isinstance(depth, int) and depth else 1.0
        return Heads(*operands, mask, groups, usual if scale is None else scale, causal)

    @property
    def keys(self) -> Size:
        """The number of keys."""
        return sizes_of(self.key)[-2]

    def attended(self, node: TorchNode, is_differentiated: bool = False) -> SSAValue:
        """
        The weighted means of values; 0 for queries that see no key.

        If gradients are needed, these queries see all keys instead, because the weights of no keys would be NaN.
        """
        causal, mask, nothing = {"causal": True} if self.causal else {}, self.mask, None
        if mask is not None:
            nothing = sees_nothing(node, self.query, mask, self.keys, 0 if self.causal else None)
            if is_differentiated:
                mask = node.emit(WhereOp, nothing, node.scalar(0.0, element_of(mask)), mask)
        result = node.emit(AttentionOp, self.query, self.key, self.value, mask, scale=self.scale, **causal)
        if nothing is not None:
            result = node.emit(WhereOp, nothing, node.scalar(0.0, element_of(result)), result)
        return self.groups.joined(node, result)

    def scores(self, node: TorchNode) -> SSAValue:
        """The scores, which are the operand of the softmax."""
        scores = node.emit(MatMulOp, self.query, self.key, transpose_right=True)
        scores = node.emit(MulOp, scores, node.scalar(self.scale, element_of(scores)))
        if self.mask is not None:
            scores = node.emit(AddOp, scores, self.mask)
        if self.causal:
            queries = sizes_of(self.query)[-2]
            scores = node.emit(AddOp, scores, added_causally(node, scores, queries, self.keys, 0))
        return scores


def _groups(node: TorchNode, query: SSAValue, key: SSAValue) -> Groups:
    if rank_of(query) < 3:
        return Groups(1, 1)
    queries, keys = sizes_of(query)[-3], sizes_of(key)[-3]
    if queries == keys or not isinstance(queries, int) or not isinstance(keys, int) or rank_of(query) != 4:
        return Groups(1, 1)
    if not keys or queries % keys:
        raise node.unsupported(f"{queries} heads of queries cannot share {keys} of keys")
    return Groups(queries, keys)


@torch_operator("_scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(
    node: TorchNode,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    attn_mask: SSAValue | None = None,
    scale: float | None = None,
) -> list[SSAValue]:
    """softmax(scale · query · keyᵀ + mask) · value, and the log-sum-exp of the scores."""
    if dropout:
        raise node.unsupported("dropout of weights of attention")
    heads = Heads.of(node, query, key, value, attn_mask, causal, scale)
    scores = heads.scores(node)
    sums = node.emit(ReduceLogSumExpOp, scores, axes=(rank_of(scores) - 1,), keepdims=False)
    sums = node.reshaped(sums, node.result(1)[1])
    return [node.cast(heads.attended(node), node.element), node.cast(sums, node.result(1)[0])]


@torch_operator("scaled_dot_product_attention.default")
def attention(
    node: TorchNode,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    mask: SSAValue | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> SSAValue:
    """softmax(scale · query · keyᵀ + mask) · value."""
    if dropout:
        raise node.unsupported("dropout of weights of attention")
    return node.cast(Heads.of(node, query, key, value, mask, causal, scale).attended(node), node.element)


@torch_operator(f"{LIBRARY}.attention_backward.default")
def attention_backward(
    node: TorchNode,
    gradient: SSAValue,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    causal: bool,
    mask: SSAValue | None = None,
    scale: float | None = None,
) -> list[SSAValue]:
    """The gradients with respect to queries, keys and values, of our attention, which recomputes weights."""
    query, key, value = variables(node, query, key, value)
    heads = Heads.of(node, query, key, value, mask, causal, scale)
    return gradients(node, heads.attended(node, is_differentiated=True), gradient, query, key, value)

"""The gradient of attention as a PyTorch operator that uses no results of forward."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.library import custom_op

from glow_mlir.frontends.torch.recurrent import LIBRARY


@custom_op(f"{LIBRARY}::attention_backward", mutates_args=())
def attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: bool,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """
    The cotangents of queries, keys and values of `scaled_dot_product_attention` from the cotangent of its result.

    It recomputes the weights: saving the sums of forward would cost a third of that time, and save less in backward.
    """
    depth = query.shape[-1]
    factor = depth**-0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * factor
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    weights = scores.softmax(-1).nan_to_num(0.0)
    by_weights = gradient @ value.transpose(-1, -2)
    by_scores = weights * (by_weights - (by_weights * weights).sum(-1, keepdim=True)) * factor
    return by_scores @ key, by_scores.transpose(-1, -2) @ query, weights.transpose(-1, -2) @ gradient


@attention_backward.register_fake
def _(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: bool,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape), value.new_empty(value.shape)

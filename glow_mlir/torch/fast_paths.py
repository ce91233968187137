"""Decompositions of the whole-layer operators that PyTorch's modules call in evaluation mode."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def transformer_encoder_layer(
    x: Tensor,
    width: int,
    heads: int,
    input_weight: Tensor,
    input_bias: Tensor | None,
    output_weight: Tensor,
    output_bias: Tensor | None,
    uses_gelu: bool,
    norm_first: bool,
    epsilon: float,
    first_scale: Tensor,
    first_offset: Tensor,
    second_scale: Tensor,
    second_offset: Tensor,
    inner_weight: Tensor,
    inner_bias: Tensor | None,
    outer_weight: Tensor,
    outer_bias: Tensor | None,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """`_transformer_encoder_layer_fwd`: attention and a network of two layers, with residuals and normalizations."""

    def attended(value: Tensor) -> Tensor:
        weights = (input_weight, input_bias, output_weight, output_bias)
        return _attention(value, value, value, width, heads, *weights, mask, mask_type)

    def inner(value: Tensor) -> Tensor:
        hidden = F.linear(value, inner_weight, inner_bias)
        return F.linear(F.gelu(hidden) if uses_gelu else F.relu(hidden), outer_weight, outer_bias)

    def first(value: Tensor) -> Tensor:
        return F.layer_norm(value, (width,), first_scale, first_offset, epsilon)

    def second(value: Tensor) -> Tensor:
        return F.layer_norm(value, (width,), second_scale, second_offset, epsilon)

    if norm_first:
        middle = x + attended(first(x))
        return middle + inner(second(middle))
    middle = first(x + attended(x))
    return second(middle + inner(middle))


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    width: int,
    heads: int,
    input_weight: Tensor,
    input_bias: Tensor | None,
    output_weight: Tensor,
    output_bias: Tensor | None,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """`_native_multi_head_attention` without returned weights."""
    if need_weights:
        return NotImplemented
    weights = (input_weight, input_bias, output_weight, output_bias)
    return _attention(query, key, value, width, heads, *weights, mask, mask_type), None


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    width: int,
    heads: int,
    input_weight: Tensor,
    input_bias: Tensor | None,
    output_weight: Tensor,
    output_bias: Tensor | None,
    mask: Tensor | None,
    mask_type: int | None,
) -> Tensor:
    """Attention of [batch, length, width]; positions where the boolean mask is true are ignored."""

    def split(tensor: Tensor, number: int) -> Tensor:
        rows = slice(number * width, (number + 1) * width)
        bias = None if input_bias is None else input_bias[rows]
        projected = F.linear(tensor, input_weight[rows], bias)
        return projected.view(*projected.shape[:2], heads, -1).transpose(1, 2)

    if query is key and key is value:
        joined = F.linear(query, input_weight, input_bias).view(*query.shape[:2], 3, heads, -1)
        q, k, v = joined.permute(2, 0, 3, 1, 4).unbind(0)
    else:
        q, k, v = (split(tensor, number) for number, tensor in enumerate((query, key, value)))
    seen = _seen(mask, mask_type)
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    return F.linear(mixed.transpose(1, 2).flatten(2), output_weight, output_bias)


OF_KEYS = 1
"""The type of a mask that marks ignored keys for each sequence."""


def _seen(mask: Tensor | None, mask_type: int | None) -> Tensor | None:
    """Convert a mask to the form that attention takes."""
    if mask is None:
        return None
    wide = mask[:, None, None, :] if mask_type == OF_KEYS else mask
    return ~wide if mask.dtype == torch.bool else wide

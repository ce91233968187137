"""Semantics of attention, in f64, rounded once."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high.attention import AttentionOp, seen_keys
from glow_mlir.dialects.properties import flag, number, size
from glow_mlir.dialects.sizes import static
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.registry import semantics


@semantics(AttentionOp)
def attention(
    op: AttentionOp, query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None
) -> np.ndarray:
    """Average the values, weighted by the softmax of the scores."""
    scores = np.matmul(wide(query) * number(op.scale), np.swapaxes(wide(key), -1, -2))
    if mask is not None:
        scores = scores + wide(mask)
    if flag(op.causal):
        queries, keys = scores.shape[-2:]
        (past,) = static((size(op.past),))
        scores = np.where(seen_keys(queries, keys, past), scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return np.matmul(weights, wide(value)).astype(query.dtype)

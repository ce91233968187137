"""Semantics of attention with a recurrent state: in f64, rounded once."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.linear_attention import LinearAttentionOp
from glow_mlir.dialects.properties import number
from glow_mlir.dialects.shapes import element_of
from glow_mlir.interpreter.linear import wide
from glow_mlir.ir.registry import semantics


def _heads(x: np.ndarray, heads: int) -> np.ndarray:
    """Split [B, T, heads * size] to [T, B, heads, size], in f64."""
    return np.moveaxis(wide(x).reshape(*x.shape[:2], heads, x.shape[2] // heads), 1, 0)


@semantics(LinearAttentionOp)
def linear_attention(
    op: LinearAttentionOp,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    past: np.ndarray | None,
    decay: np.ndarray | None,
    beta: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Process one token after the other."""
    queries, heads, depth, width = op.sizes()
    batch, tokens, _ = query.shape
    state = np.zeros((batch, heads, depth, width)) if past is None else wide(past)
    rows = [_heads(x, count) for x, count in ((query, queries), (key, heads), (value, heads))]
    result = np.zeros((batch, tokens, queries, width))
    for t in range(tokens):
        q, k, v = (row[t] for row in rows)
        if decay is not None:
            state = state * np.exp(_heads(decay, heads)[t])[..., None]
        if beta is not None:
            seen = np.einsum("bhkv,bhk->bhv", state, k)
            v = wide(beta)[:, t, :, None] * (v - seen)
        state = state + k[..., None] * v[..., None, :]
        shared = np.repeat(state, queries // heads, axis=1)
        result[:, t] = np.einsum("bhkv,bhk->bhv", shared, q) * number(op.scale)
    kept = numpy_dtype(element_of(op.outputs()[1]))
    return result.reshape(batch, tokens, -1).astype(query.dtype), state.astype(kept)

"""The kernel of attention with a recurrent state, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, check_all, runnable_targets, sample

from glow_mlir.dialects.glow_high.linear_attention import LinearAttentionOp

HEADS: dict[str, Any] = {"q_num_heads": 4, "kv_num_heads": 2, "scale": 0.4}


@pytest.mark.parametrize("target", runnable_targets())
def test_rules(target: str):
    query, key, value = sample((2, 5, 24)), sample((2, 5, 12)) / 3, sample((2, 5, 42))
    state, beta = sample((2, 2, 6, 21)), np.abs(sample((2, 5, 2)))
    by_head, by_element = -np.abs(sample((2, 5, 2))), -np.abs(sample((2, 5, 12)))

    def halves(*arrays: np.ndarray) -> list[np.ndarray]:
        return [array.astype(np.float16) for array in arrays]

    check_all(
        [
            Case(LinearAttentionOp, query, key, value, update_rule="linear", **HEADS),
            Case(LinearAttentionOp, query, key, value, state, by_head, update_rule="gated", **HEADS),
            Case(LinearAttentionOp, query, key, value, None, by_element, update_rule="gated", **HEADS),
            Case(LinearAttentionOp, query, key, value, state, None, beta, update_rule="delta", **HEADS),
            Case(LinearAttentionOp, query, key, value, state, by_element, beta[..., :1], **HEADS),
            Case(LinearAttentionOp, *halves(query, key, value), state.astype("f2"), *halves(by_head, beta), **HEADS),
        ],
        target,
        tolerance=2e-3,
    )

"""Counts of n-grams and recurrent attention compute what ONNX's reference implementation does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from single_node import SingleNode, assert_equal


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_tf_idf_vectorizer(mode: str) -> None:
    attributes: dict[str, Any] = {
        "mode": mode,
        "min_gram_length": 1,
        "max_gram_length": 3,
        "max_skip_count": 2,
        "ngram_counts": [0, 2, 8],
        "ngram_indexes": [5, 0, 1, 2, 3, 6],
        "pool_int64s": [3, 1, 2, 2, 0, 1, 1, 4, 1, 1, 2],
        "weights": [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
    x = np.random.default_rng(3).integers(0, 5, (4, 15))
    node = SingleNode("TfIdfVectorizer", [x], 9, attributes)
    assert_equal(node.by_us(), node.by_reference())


@settings(max_examples=examples(15))
@given(
    rule=st.sampled_from(["linear", "gated", "delta", "gated_delta"]),
    group=st.integers(1, 2),
    by_head=st.booleans(),
    has_state=st.booleans(),
)
def test_linear_attention(rule: str, group: int, by_head: bool, has_state: bool) -> None:
    generator = np.random.default_rng(group)

    def normal(*shape: int) -> np.ndarray:
        return (generator.normal(size=shape) / 2).astype(np.float32)

    decay = -np.abs(normal(2, 3, 2 if by_head else 6)) if rule.startswith("gated") else None
    beta = normal(2, 3, 2 if by_head else 1) if rule.endswith("delta") else None
    state = normal(2, 2, 3, 4) if has_state else None
    operands = [normal(2, 3, 2 * group * 3), normal(2, 3, 6), normal(2, 3, 8), state, decay, beta]
    attributes = {"q_num_heads": 2 * group, "kv_num_heads": 2, "update_rule": rule}
    node = SingleNode("LinearAttention", operands, 27, attributes, outputs=2)
    assert_equal(node.by_us(), node.by_reference(), atol=1e-5)

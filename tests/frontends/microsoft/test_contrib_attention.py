"""onnxruntime's attention gives what it computes: masks of all shapes, packed operands, a past, biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from contrib_cases import Contrib, below, normal

from glow_mlir.errors import ModelError, UnsupportedError

B, S, N, D = 2, 4, 2, 8
HIDDEN = N * D
X, WEIGHTS, BIAS = normal(B, S, HIDDEN), normal(HIDDEN, 3 * HIDDEN), normal(3 * HIDDEN)
HEADS = {"num_heads": N}


def mask_of(kind: str, keys: int = S) -> np.ndarray:
    """A mask of one of the shapes."""
    ends, begins = np.array([keys - 1, keys]), np.array([1, 0])
    starts = np.arange(B + 1) * S
    found = {
        "ends": ends,
        "bounds": np.concatenate([ends, begins]),
        "starts": np.concatenate([ends, starts, starts]),
        "keys": np.arange(keys) < ends[:, None],
        "rows": (np.arange(keys) < ends[:, None, None]) & (below(2, B, S, keys) > 0),
    }
    if kind == "rows":
        found[kind][..., 0] = True  # f32 has few digits of scores that are all lowered by 10,000.
    return found[kind].astype(np.int32)


@pytest.mark.parametrize("mask", ["", "ends", "bounds", "starts", "keys", "rows"])
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("value", [-10000.0, -5.0])
def test_masks_of_all_shapes(mask: str, unidirectional: int, value: float) -> None:
    given = mask_of(mask) if mask else None
    attributes = {**HEADS, "unidirectional": unidirectional, "mask_filter_value": value}
    Contrib("Attention", [X, WEIGHTS, BIAS, given], attributes).check()


@pytest.mark.parametrize("attributes", [{}, {"scale": 0.5}, {"unidirectional": 1}], ids=str)
@pytest.mark.parametrize("mask", ["", "keys"])
def test_attention_with_a_past(attributes: Mapping[str, Any], mask: str) -> None:
    past, given = normal(2, B, N, 3, D), mask_of(mask, 3 + S) if mask else None
    Contrib("Attention", [X, WEIGHTS, BIAS, given, past], {**HEADS, **attributes}, (0, 1)).check()


def test_attention_with_addends_other_widths_and_results() -> None:
    for addend in (normal(B, N, S, S), normal(1, 1, S, S)):
        Contrib("Attention", [X, WEIGHTS, BIAS, mask_of("keys"), None, addend], HEADS).check()
    widths = {"qkv_hidden_sizes": [HIDDEN, HIDDEN, 6]}
    Contrib("Attention", [X, normal(HIDDEN, 38), normal(38)], {**HEADS, **widths}).check()
    Contrib("Attention", [X, WEIGHTS, BIAS], HEADS, (0, 1)).check()
    Contrib("Attention", [X, WEIGHTS, None], HEADS).check()


QUERY, KEY, VALUE = normal(B, S, HIDDEN), normal(B, 5, HIDDEN), normal(B, 5, HIDDEN)


@pytest.mark.parametrize("mask", ["", "ends", "starts", "keys", "rows"])
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("with_bias", [False, True])
def test_heads_that_are_apart(mask: str, unidirectional: int, with_bias: bool) -> None:
    given, bias = mask_of(mask) if mask else None, BIAS if with_bias else None
    operands = [X, KEY[:, :S].copy(), VALUE[:, :S].copy(), bias, given, normal(B, N, S, S)]
    attributes = {**HEADS, "unidirectional": unidirectional, "mask_filter_value": -4.0}
    Contrib("MultiHeadAttention", operands, attributes).check()


def packed(*parts: np.ndarray) -> np.ndarray:
    """Values [batch, length, heads * elements] in one."""
    return np.stack([part.reshape(*part.shape[:2], N, D) for part in parts], 3)


@pytest.mark.parametrize("bias", [None, BIAS], ids=["plain", "bias"])
def test_packed_operands(bias: np.ndarray | None) -> None:
    """Which onnxruntime has on GPUs only: they are the same as those apart."""
    keys, values = KEY[:, :S].copy(), VALUE[:, :S].copy()
    wanted = Contrib("MultiHeadAttention", [QUERY, keys, values, bias], HEADS).expected()
    Contrib("MultiHeadAttention", [packed(QUERY, keys, values), None, None, bias], HEADS).check(wanted)
    wanted = Contrib("MultiHeadAttention", [QUERY, KEY, VALUE, bias], HEADS).expected()
    Contrib("MultiHeadAttention", [QUERY, packed(KEY, VALUE), None, bias], HEADS).check(wanted)


def test_queries_of_another_sequence() -> None:
    Contrib("MultiHeadAttention", [QUERY, KEY, VALUE, None, mask_of("keys", 5)], {**HEADS, "scale": 0.7}).check()
    Contrib("MultiHeadAttention", [QUERY, KEY, normal(B, 5, 12)], HEADS).check()
    kept = [normal(B, N, 5, D), normal(B, N, 5, D)]
    Contrib("MultiHeadAttention", [QUERY, *kept], HEADS).check()


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", ["", "keys", "rows"])
def test_heads_with_a_past(mask: str, unidirectional: int) -> None:
    past, given = [normal(B, N, 3, D), normal(B, N, 3, D)], mask_of(mask, 3 + S) if mask else None
    operands = [X, KEY[:, :S].copy(), VALUE[:, :S].copy(), BIAS, given, None, *past]
    attributes = {**HEADS, "unidirectional": unidirectional}
    Contrib("MultiHeadAttention", operands, attributes, (0, 1, 2)).check()


PLACES = below(9, B, S)
TABLES = [normal(12, D // 2), normal(12, D // 2)]


@pytest.mark.parametrize("places", [np.array([3], np.int64), PLACES], ids=["offset", "places"])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rotary_positions(places: np.ndarray, interleaved: int, dtype: str) -> None:
    tables = [table.astype(dtype) for table in TABLES]
    for x in (X, normal(B, N, S, D)):
        Contrib("RotaryEmbedding", [x.astype(dtype), places, *tables], {"interleaved": interleaved}).check()
    half = [np.ascontiguousarray(table[:, :2]) for table in tables]
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": 4, "num_heads": N}
    for x in (X, normal(B, N, S, D)):
        Contrib("RotaryEmbedding", [x.astype(dtype), places, *half], attributes).check()


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_positions_of_three_kinds(layout: int, interleaved: int) -> None:
    attributes = {"mrope_section": [2, 1, 1], "mrope_layout": layout, "interleaved": interleaved, "num_heads": N}
    for x in (X, normal(B, N, S, D)):
        Contrib("MRotaryEmbedding", [x, below(9, 3, B, S), *TABLES], attributes).check()


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    for kind, operands, attributes, error, said in (
        ("Attention", [X, WEIGHTS, BIAS], {"num_heads": 5}, ModelError, "5 heads do not fit [16, 16, 16] elements"),
        ("Attention", [X, WEIGHTS, BIAS], {**HEADS, "do_rotary": 1}, UnsupportedError, "rotary positions"),
        ("Attention", [X, WEIGHTS, BIAS, mask_of("keys", 3)], HEADS, UnsupportedError, "a mask of the shape (2, 3)"),
        ("Attention", [X, WEIGHTS, BIAS, np.zeros(5, np.int32)], HEADS, UnsupportedError, "a mask of the shape (5,)"),
        ("MultiHeadAttention", [X], HEADS, ModelError, "has no operand 1"),
        ("MultiHeadAttention", [normal(B, S, N, 2, D)], HEADS, ModelError, "operand 0 of MultiHeadAttention"),
        ("MultiHeadAttention", [X, X, X, normal(9)], HEADS, ModelError, "a bias of (9,) does not fit"),
        ("RotaryEmbedding", [X, PLACES[0], *TABLES], {}, ModelError, "positions (4,) are not one"),
        ("RotaryEmbedding", [X, PLACES, TABLES[0], TABLES[1][:5]], {}, ModelError, "do not fit sines (5, 4)"),
        ("MRotaryEmbedding", [X, below(9, 3, B, S), *TABLES], {"mrope_section": [1, 1, 1]}, ModelError, "sections"),
    ):
        assert said in Contrib(kind, operands, attributes).refusal(error)

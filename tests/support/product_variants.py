"""Cases of products, attention and recurrences: see `operator_variants`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from breadth import combinations
from execute import Case, sample
from ml_dtypes import bfloat16
from operator_variants import FLOATS, Cases, Families, case
from xdsl.dialects.builtin import ArrayAttr, StringAttr

PRODUCTS = Families()


@PRODUCTS.add()
def determinants() -> Cases:
    """Rows that are exchanged, singular matrices, numbers that are missing, and matrices without elements."""
    for dtype, size in itertools.product(FLOATS, (1, 2, 3, 5, 8, 17)):
        yield case("det", sample((2, 3, size, size), dtype) / np.dtype(dtype).type(size))
    for matrix in (
        [[0, 1], [1, 0]],
        [[0, 0, 1], [0, 2, 0], [3, 0, 0]],
        [[1, 2, 3], [2, 4, 6], [1, 0, 1]],
        [[0, 0], [0, 0]],
        [[np.nan, 1], [1, 0]],
        [[1, 1], [1, np.nan]],
    ):
        yield case("det", np.array(matrix, np.float32))
    yield case("det", np.zeros((2, 0, 0), np.float32))


def attention(sizes: tuple[int, int, int, int], *mask: np.ndarray, dtype: str = "f4", **more: Any) -> Case:
    """Attention of three heads: queries, keys, and elements of a key and of a value."""
    queries, keys, depth, width = sizes
    shapes = (3, queries, depth), (3, keys, depth), (3, keys, width)
    return case("attention", *(sample(shape, dtype) for shape in shapes), *mask, **more)


@PRODUCTS.add()
def attentions() -> Cases:
    """Sizes around those of blocks, masks of all shapes, causal or not, and scores that are far apart."""
    sizes = (1, 1, 1, 1), (1, 37, 8, 5), (3, 130, 80, 72), (5, 17, 3, 33), (13, 64, 16, 32), (50, 197, 64, 70)
    for given in (*sizes, (65, 130, 32, 64)):
        yield attention(given)
    for dtype in ("f4", "f8"):
        yield attention((9, 21, 12, 20), dtype=dtype, scale=0.25)
    for past, given in itertools.product((0, 3), ((40, 43, 8, 16), (3, 43, 8, 16), (70, 30, 8, 70))):
        yield attention(given, causal=True, past=past)
    query, key, value = sample((2, 3, 7, 8)), sample((2, 1, 9, 8)), sample((9, 5))
    yield case("attention", query, key, value, sample((3, 1, 9)))
    yield case("attention", query[0, 0], key, value)
    query, key, value = (sample((2, 20, 8)) for _ in range(3))
    yield case("attention", 100 * query, key, value)
    query, key = query.copy(), key.copy()
    query[0, 3], key[1, 5] = np.nan, np.inf
    yield case("attention", query, key, value)


@PRODUCTS.add()
def masked_attentions() -> Cases:
    for shape in ((), (1,), (37,), (1, 37), (9, 1), (9, 37), (3, 1, 37), (3, 9, 37), (3, 1, 1)):
        yield attention((9, 37, 8, 16), sample(shape))
        yield attention((9, 37, 8, 16), sample(shape), causal=True, past=20)
    for shape in ((), (37,), (2, 1), (2, 37), (3, 1, 37)):
        yield attention((2, 37, 8, 16), sample(shape), scale=0.5)
        yield attention((2, 37, 8, 16), sample(shape), causal=True, past=20)
    mask = np.zeros((4, 37), np.float32)
    mask[0, 3:], mask[1, :36], mask[2, ::2] = -np.inf, -3e38, -1e4
    yield attention((4, 37, 8, 16), mask)
    mask = mask.copy()
    mask[3] = -np.inf
    yield attention((4, 37, 8, 16), mask)


@PRODUCTS.add(2e-2)
def attention_of_half_floats() -> Cases:
    yield attention((9, 21, 12, 20), dtype="f2", scale=0.25)


@PRODUCTS.add(2e-3)
def linear_attentions() -> Cases:
    heads: dict[str, Any] = {"q_num_heads": 4, "kv_num_heads": 2, "scale": 0.4}
    query, key, value = sample((2, 5, 24)), sample((2, 5, 12)) / 3, sample((2, 5, 42))
    state, beta = sample((2, 2, 6, 21)), np.abs(sample((2, 5, 2)))
    by_head, by_element = -np.abs(sample((2, 5, 2))), -np.abs(sample((2, 5, 12)))
    yield case("linear_attention", query, key, value, update_rule="linear", **heads)
    yield case("linear_attention", query, key, value, state, by_head, update_rule="gated", **heads)
    yield case("linear_attention", query, key, value, None, by_element, update_rule="gated", **heads)
    yield case("linear_attention", query, key, value, state, None, beta, update_rule="delta", **heads)
    yield case("linear_attention", query, key, value, state, by_element, beta[..., :1], **heads)
    halves = (array.astype(np.float16) for array in (query, key, value, state, by_head, beta))
    yield case("linear_attention", *halves, **heads)


def pages(
    queries: tuple[int, int, int], heads: int, block: int, width: int, dtype: Any = "f2", positions: Any = None
) -> list[np.ndarray]:
    """Queries, pages of keys and of values, a table of three sequences of three pages, and where the queries are."""
    rows, _, depth = queries
    places = np.arange(rows) * 5 % (3 * block) if positions is None else np.array(positions)
    keys, values = sample((11, heads, depth, block), seed=1), sample((11, heads, block, width), seed=2)
    table = np.array([[3, 10, 0], [7, 1, 5], [3, 2, 9]])
    return [sample(queries), keys.astype(dtype), values.astype(dtype), table, np.arange(rows) // 2 % 3, places]


@PRODUCTS.add()
def paged_attentions() -> Cases:
    """Cache types, heads that share keys, pages and vectors of all sizes, windows, sinks, capped scores, padding."""
    for dtype, block in combinations(("f2", bfloat16, "f4"), (1, 3, 8, 16, 32, 48)):
        yield case("paged_attention", *pages((7, 4, 16), 2, block, 24, dtype), scale=0.25)
    for queries, heads, width in (((5, 3, 5), 1, 7), ((3, 5, 33), 5, 1), ((2, 20, 64), 1, 64), ((4, 12, 80), 4, 128)):
        yield case("paged_attention", *pages(queries, heads, 16, width), scale=queries[2] ** -0.5)
    neighbours = pages((9, 4, 8), 2, 8, 12, "f4", [9, 10, 11, 12, -1, 3, 4, 5, 22])
    neighbours[4] = np.array([1, 1, 1, 1, 9, 0, 0, 0, 2], np.int32)
    yield case("paged_attention", *neighbours)
    for window in (1, 2, 3, 7, 24):
        yield case("paged_attention", *neighbours, window=window)
    yield case("paged_attention", *neighbours, sample((4,)), softcap=1.5, window=5)
    yield case("paged_attention", *pages((4, 4, 16), 4, 16, 16), sample((4,)) * 3)
    yield case("paged_attention", *pages((0, 4, 16), 4, 16, 16))


@PRODUCTS.add(0.0)
def written_pages() -> Cases:
    """Both layouts, types that are rounded to, padding, and rows of one place, of which the last one wins."""
    for dtype, transposed in itertools.product(("f2", bfloat16, "f4"), (False, True)):
        _, keys, values, *places = pages((9, 2, 19), 2, 8, 19, dtype, [0, 23, -1, 7, 8, 8, 9, 15, 3])
        pages_ = keys if transposed else values
        yield case("write_pages", pages_, sample((9, 2, 19)), *places, transposed=transposed)
    _, keys, _, *places = pages((0, 2, 19), 2, 8, 19)
    yield case("write_pages", keys, np.zeros((0, 2, 19), np.float32), *places, transposed=True)


@PRODUCTS.add(0.0)
def extended_caches() -> Cases:
    """Types; sequences that start before, at and behind the end of the past, beyond the result and before it."""
    for dtype in ("f2", bfloat16, "f4", "f8"):
        past, rows = (sample((7, 3, count, 19), seed=count).astype(dtype) for count in (6, 2))
        starts = np.array([6, 4, 0, 8, 1 << 62, -1, -9])
        for length, more in itertools.product((9, 6, 4), (2, 1)):
            yield case("extend_cache", past, rows, starts, np.minimum(starts, 1 << 40) + more, length=length)
        yield case("extend_cache", past, rows, starts.clip(-9, 99).astype(np.int32), np.full(7, -1), length=8)
    empty = np.zeros((2, 3, 0, 5), np.float32)
    yield case("extend_cache", empty, sample((2, 3, 4, 5)), np.array([0, 0]), np.array([4, 2]), length=4)
    yield case("extend_cache", sample((2, 3, 4, 5)), empty, np.array([4, 2]), np.array([4, 2]), length=5)
    yield case("extend_cache", empty, empty, np.array([0, 1]), np.array([0, 1]), length=0)


def half(*shape: int, dtype: str = "f4") -> np.ndarray:
    """Random elements about 0, small enough that no gate is always open or shut."""
    return (sample(shape, dtype) * 0.5).astype(dtype)


def gates(count: int, sizes: tuple[int, int, int], dtype: str = "f4") -> list[np.ndarray]:
    """Input of the gates, weights, with which differences do not grow from step to step, and the initial state."""
    steps, batch, hidden = sizes
    weights = half(hidden, count * hidden, dtype=dtype) * (1 + hidden) ** -0.5
    inputs = half(steps, batch, count * hidden, dtype=dtype)
    return [inputs, weights.astype(dtype), half(batch, hidden, dtype=dtype)]


def lengths_of(sizes: tuple[int, int, int]) -> np.ndarray:
    """How long the sequences of a batch are, from 0 on."""
    steps, batch, _ = sizes
    return np.arange(batch, dtype=np.int32) % (steps + 1)


@PRODUCTS.add()
def recurrences() -> Cases:
    """Whole blocks of the weights and the rest, one row and several, either direction, sequences that end early."""
    sizes_of_all = (3, 1, 8), (4, 7, 19), (2, 4, 33), (3, 1, 70), (4, 1, 129), (2, 1, 64), (2, 6, 37)
    for sizes, has_lengths, reverse in combinations(sizes_of_all, (False, True), (False, True)):
        _, batch, hidden = sizes
        lengths = lengths_of(sizes) if has_lengths else None
        yield case("lstm_recurrence", *gates(4, sizes), half(batch, hidden), None, lengths, reverse=reverse)
        for bias in (None, half(hidden)):
            yield case("gru_recurrence", *gates(3, sizes), bias, lengths, reverse=reverse)
        yield case("rnn_recurrence", *gates(1, sizes), lengths, reverse=reverse)
    sizes = (3, 2, 5)
    yield case("lstm_recurrence", *gates(4, sizes), half(2, 5), half(15), None, clip=0.3, input_forget=True)
    yield case("rnn_recurrence", *gates(1, sizes), activations=ArrayAttr([StringAttr("relu")]))
    yield case("lstm_recurrence", *gates(4, (3, 5, 7), "f8"), half(5, 7, dtype="f8"))


def with_sums(*dtypes: str) -> Cases:
    """Recurrences that keep the sums of their gates."""
    sizes_of_all = (3, 1, 19), (4, 7, 33)
    for sizes, dtype, has_lengths, reverse in combinations(sizes_of_all, dtypes, (False, True), (False, True)):
        _, batch, hidden = sizes
        lengths = lengths_of(sizes) if has_lengths else None
        cell, peepholes = half(batch, hidden, dtype=dtype), half(3 * hidden, dtype=dtype)
        made = gates(4, sizes, dtype), gates(3, sizes, dtype), gates(1, sizes, dtype)
        yield case("lstm_recurrence_with_sums", *made[0], cell, peepholes, lengths, reverse=reverse)
        for bias in (None, half(hidden, dtype=dtype)):
            yield case("gru_recurrence_with_sums", *made[1], bias, lengths, reverse=reverse)
        yield case("rnn_recurrence_with_sums", *made[2], lengths, reverse=reverse)


@PRODUCTS.add()
def recurrences_with_sums() -> Cases:
    """Also with lengths in any order, of longer sequences, or below 0: NaN behind the end stays there."""
    yield from with_sums("f4", "f8")
    lengths = np.array([2, 9, 0, 5, -3, 4], np.int32)
    inputs, weights, state = gates(4, (5, 6, 20))
    for number, length in enumerate(lengths):
        inputs[max(length, 0) :, number] = np.nan
    yield case("lstm_recurrence_with_sums", inputs, weights, state, state, half(60), lengths)


def on_constant_weights(*dtypes: str) -> Cases:
    """Recurrences whose weights are packed at compile time."""
    for sizes, dtype in combinations(((3, 1, 33), (2, 3, 20)), dtypes):
        _, batch, hidden = sizes
        packed: dict[str, Any] = {"constants": [1]}
        yield case("lstm_recurrence", *gates(4, sizes, dtype), half(batch, hidden, dtype=dtype), **packed)
        for bias in (None, half(hidden, dtype=dtype)):
            yield case("gru_recurrence", *gates(3, sizes, dtype), bias, **packed)
        yield case("rnn_recurrence", *gates(1, sizes, dtype), **packed)


@PRODUCTS.add()
def recurrences_on_constant_weights() -> Cases:
    yield from on_constant_weights("f4", "f8")


@PRODUCTS.add(5e-3)
def recurrences_of_half_floats() -> Cases:
    yield from with_sums("f2")
    yield from on_constant_weights("f2")
    yield case("gru_recurrence", *gates(3, (3, 2, 7), "f2"))


@PRODUCTS.add()
def recurrent_layers() -> Cases:
    for directions, options in ((1, {}), (2, {"direction": "bidirectional"}), (1, {"batch_first": True})):
        for kind, count in (("lstm", 4), ("gru", 3)):
            weights = half(directions, count * 5, 6), half(directions, count * 5, 5), half(directions, count * 10)
            yield case(kind, half(3, 2, 6), *weights, **options)

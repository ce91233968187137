"""Chains of calls of GroupQueryAttention: results are onnxruntime's, and stay as they are, wherever the next lie."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import onnxruntime
import pytest
from contrib_cases import assert_near, normal
from hypothesis import given, settings
from hypothesis import strategies as st
from query_attention_model import DEPTH, KEY_HEADS, WIDTH, query_attention

from glow_mlir import InferenceSession

SIZES = {"batch": (1, 2), "length": (1, 6), "past": (0, 24), "total": (1, 30)}

Tables = list[np.ndarray]


class Chain:
    """A session and onnxruntime's, and all tables that calls have given or got, with copies of them."""

    def __init__(self, dtype: str = "float32", **attributes: int) -> None:
        self.dtype = dtype
        source = query_attention(dtype, **attributes)
        self.ours = InferenceSession(source, threads=1, dimensions=SIZES, cache=False)
        self._theirs: Any = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        self._copies: list[tuple[np.ndarray, np.ndarray]] = []

    def user_tables(self, batch: int, past: int) -> Tables:
        """Tables that no call has given."""
        tables = [normal(batch, KEY_HEADS, past, DEPTH, dtype=self.dtype) for _ in "kv"]
        self._copies = [(table, table.copy()) for table in tables]
        return tables

    def inputs(self, past: Tables, length: int, total: int, ends: Sequence[int]) -> dict[str, np.ndarray]:
        """The inputs of a call with new keys up to the ends of sequences, under a mask of `total` keys."""
        mask = (np.arange(total) < np.array(ends)[:, np.newaxis]).astype(np.int64)
        rows = normal(len(ends), length, WIDTH, dtype=self.dtype)
        return {"qkv": rows, "mask": mask, "past.k": past[0], "past.v": past[1]}

    def step(self, past: Tables, length: int, total: int, ends: Sequence[int]) -> Tables:
        """Call both, compare them and all tables that there are; return the new tables."""
        given = self.inputs(past, length, total, ends)
        wanted = self._theirs.run(None, given)
        found = self.ours.run(None, given)
        self._copies += [(table, table.copy()) for table in found[1:]]
        for sequence, end in enumerate(ends):
            rows = end if total == length else length  # The first call has padding at the end.
            assert_near([found[0][sequence, :rows]], [wanted[0][sequence, :rows]], 2e-5)
            for ours, theirs in zip(found[1:], wanted[1:], strict=True):
                assert ours.shape == theirs.shape
                assert_near([ours[sequence, :, :end]], [theirs[sequence, :, :end]], 2e-5)
        for table, copy in self._copies:
            np.testing.assert_array_equal(table, copy)
        return found[1:]


FORMS: dict[str, tuple[str, dict[str, int]]] = {
    "plain": ("float32", {}),
    "rotary": ("float32", {"do_rotary": 1}),
    "halves": ("float16", {"do_rotary": 1}),
    "window": ("float32", {"do_rotary": 1, "local_window_size": 3}),
}
"""Element types and attributes."""


@cache
def chain(form: str) -> Chain:
    """A chain, compiled once."""
    dtype, attributes = FORMS[form]
    return Chain(dtype, **attributes)


def are_shared(one: Tables, other: Tables) -> bool:
    """Whether tables share memory: all of them, or none."""
    found = {np.shares_memory(*pair) for pair in zip(one, other, strict=True)}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("form", FORMS)
def test_steps_append_to_the_tables_of_the_prompt(form: str) -> None:
    calls = chain(form)
    tables = calls.step(calls.user_tables(1, 0), 5, 5, [5])
    for total in (6, 7, 10):
        longer = calls.step(tables, total - tables[0].shape[2], total, [total])
        assert are_shared(longer, tables)
        tables = longer


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_appends_where_all_sequences_are_as_long_as_their_tables(form: str) -> None:
    calls = chain(form)
    tables = calls.step(calls.user_tables(2, 0), 4, 4, [4, 4])
    longer = calls.step(tables, 1, 5, [5, 5])
    assert are_shared(longer, tables)
    assert not are_shared(calls.step(longer, 1, 6, [6, 4]), longer)


def test_sequences_that_are_shorter_than_their_tables_are_copied() -> None:
    calls = chain("rotary")
    tables = calls.step(calls.user_tables(2, 0), 5, 5, [5, 2])
    for step in range(3):
        longer = calls.step(tables, 1, 6 + step, [6 + step, 3 + step])
        assert not are_shared(longer, tables)
        tables = longer


def test_a_sequence_shorter_than_its_mask_is_copied_and_the_table_may_still_grow() -> None:
    calls = chain("plain")
    tables = calls.step(calls.user_tables(1, 0), 4, 4, [4])
    assert not are_shared(calls.step(tables, 1, 5, [3]), tables)
    assert not are_shared(calls.step(tables, 1, 3, [3]), tables)
    assert are_shared(calls.step(tables, 1, 5, [5]), tables)


def test_two_branches_of_one_past() -> None:
    calls = chain("halves")
    tables = calls.step(calls.user_tables(1, 0), 3, 3, [3])
    first, second = (calls.step(tables, 2, 5, [5]) for _ in range(2))
    assert are_shared(first, tables)
    assert not are_shared(second, tables)
    assert are_shared(calls.step(first, 1, 6, [6]), first)
    assert are_shared(calls.step(second, 1, 6, [6]), second)
    assert not are_shared(calls.step([table[:, :, :2] for table in first], 1, 3, [3]), first)


def test_one_table_as_keys_and_as_values() -> None:
    calls = chain("plain")
    keys, _ = calls.step(calls.user_tables(1, 0), 3, 3, [3])
    calls.step([keys, keys], 1, 4, [4])


def test_tables_of_the_caller_are_copied() -> None:
    calls = chain("rotary")
    for past, total, ends in ((5, 6, [6]), (5, 6, [4]), (7, 7, [5]), (9, 4, [4])):
        tables = calls.user_tables(1, past)
        assert not are_shared(calls.step(tables, 1, total, ends), tables)


def test_threads_that_continue_one_past() -> None:
    calls = chain("plain")
    past = calls.step(calls.user_tables(1, 0), 4, 4, [4])
    given = [calls.inputs(past, 1, 5, [5 - number % 2]) for number in range(16)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(partial(calls.ours.run, None), given))
    for inputs, (_, *tables) in zip(given, found, strict=True):
        copies = {**inputs, "past.k": past[0].copy(), "past.v": past[1].copy()}
        for table, wanted in zip(tables, calls.ours.run(None, copies)[1:], strict=True):
            np.testing.assert_array_equal(table, wanted)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25)
@given(data=st.data())
def test_random_chains(form: str, data: st.DataObject) -> None:
    """From any table that there is, to any end that its keys allow."""
    calls = chain(form)
    batch = data.draw(st.integers(1, 2), "batch")
    known = [calls.user_tables(batch, data.draw(st.integers(0, 6), "past"))]
    for _ in range(data.draw(st.integers(1, 6), "calls")):
        past = known[data.draw(st.integers(max(0, len(known) - 2), len(known) - 1), "which")]
        before = past[0].shape[2]
        length = data.draw(st.integers(1, 3 if batch == 1 or not before else 1), "length")
        grows = data.draw(st.booleans(), "grows") or length > before
        total = before + length if grows else data.draw(st.integers(length, before), "total")
        shortest = 1 if total == length else length
        ends = data.draw(st.lists(st.integers(shortest, total), min_size=batch, max_size=batch), "ends")
        known.append(calls.step(past, length, total, ends))

"""Sequences for loops of one's own: whatever is appended, truncated and forked, logits are those of a fresh one."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_decoder import PAGE, VOCABULARY, MostLikely, PagedDecoder, logits_of
from small_generators import small_generator

from glow_mlir.errors import ExecutionError, InputError
from glow_mlir.generation.engine import Engine, EngineLimits
from glow_mlir.generation.pages import PagePool
from glow_mlir.generation.request import Request
from glow_mlir.generation.sampling import Sampling
from glow_mlir.generation.token_sequence import TokenSequence, append

CONTEXT = 40
TOKENS = st.lists(st.integers(0, VOCABULARY - 1), min_size=2, max_size=9)


def engine_of(pages: int, rows: int = 7, sequences: int = 3, outputs: int = 2) -> Engine:
    limits = EngineLimits(rows, sequences, outputs, CONTEXT)
    return Engine(PagedDecoder(pages), MostLikely(), PagePool(pages, PAGE), limits)


def wanted_logits(tokens: list[int], wanted: int) -> np.ndarray:
    return np.stack([logits_of(np.array(tokens[: len(tokens) - n], np.int64)) for n in reversed(range(wanted))])


@settings(max_examples=40, deadline=None)
@given(data=st.data(), rows=st.integers(4, 9), sequences=st.integers(1, 4), outputs=st.integers(1, 4))
def test_logits_are_those_of_a_fresh_sequence(data: Any, rows: int, sequences: int, outputs: int) -> None:
    engine = engine_of(8 * CONTEXT // PAGE, rows, sequences, outputs)
    beside = Request([1, 2, 3], Sampling(temperature=0), 20, lambda _: None)
    engine.submit(beside)
    running = engine.drive(beside)
    texts: list[tuple[TokenSequence, list[int]]] = [(TokenSequence(engine, VOCABULARY), [])]
    for _ in range(data.draw(st.integers(1, 12))):
        number = data.draw(st.integers(0, len(texts) - 1))
        sequence, text = texts[number]
        action = data.draw(st.sampled_from(["append", "append", "truncate", "fork", "close", "step"]))
        if action == "fork" and len(texts) < 5:
            texts.append((sequence.fork(), list(text)))
        elif action == "truncate":
            length = data.draw(st.integers(0, len(text)))
            sequence.truncate(length)
            texts[number] = sequence, text[:length]
        elif action == "close" and len(texts) > 1:
            sequence.close()
            del texts[number]
        elif action == "step":
            next(running, None)
        else:
            chosen = [item for item in texts if data.draw(st.booleans()) and len(item[1]) + 9 <= CONTEXT]
            new = {each: data.draw(TOKENS) for each, _ in chosen}
            found = append(new, wanted=data.draw(st.sampled_from([1, 2])))
            for each, old in chosen:
                old += new[each]
                np.testing.assert_array_equal(found[each], wanted_logits(old, len(found[each])))
        assert [each.tokens for each, _ in texts] == [old for _, old in texts]
    for each, _ in texts:
        each.close()
    with engine.turn():
        engine.cancel(beside)
    assert engine.held.count == 0
    assert engine.held.pool.available == engine.held.pool.count


def test_forks_share_full_pages() -> None:
    engine = engine_of(20)
    first = TokenSequence(engine, VOCABULARY)
    first.append([1, 2, 3, 4, 5, 6])
    forks = [first.fork() for _ in range(5)]
    assert engine.held.count == 2
    for number, fork in enumerate(forks):
        np.testing.assert_array_equal(fork.append([number]), wanted_logits([1, 2, 3, 4, 5, 6, number], 1))
    assert engine.held.count == 7
    assert first.tokens == [1, 2, 3, 4, 5, 6]
    del first, forks, fork
    gc.collect()
    with engine.turn():
        assert engine.held.count == 0


def test_what_fails_changes_nothing() -> None:
    engine = engine_of(5)
    first, second = TokenSequence(engine, VOCABULARY), TokenSequence(engine, VOCABULARY)
    first.append([1] * 10)
    second.append([1] * 3)
    with pytest.raises(ExecutionError, match="all pages of keys and values are in use"):
        append({first: [2], second: [2] * 9})
    assert (first.tokens, second.tokens) == ([1] * 10, [1] * 3)
    np.testing.assert_array_equal(second.append([2]), wanted_logits([1, 1, 1, 2], 1))
    for tokens, words in (
        ([], "logits of 1"),
        ([VOCABULARY], "the token 12"),
        ([1.5], r"the token 1\.5"),
        ([1] * 99, "99"),
    ):
        with pytest.raises(InputError, match=words):
            first.append(tokens)
    with pytest.raises(InputError, match="10 tokens cannot be truncated to 11"):
        first.truncate(11)
    first.close()
    first.close()
    for act in (lambda: first.append([1]), lambda: first.truncate(0), first.fork):
        with pytest.raises(InputError, match="closed"):
            act()
    with pytest.raises(InputError, match="several generators"):
        append({second: [1], TokenSequence(engine_of(3), VOCABULARY): [1]})


@pytest.mark.extra
def test_a_decoder_has_equal_bits(tmp_path: Any) -> None:
    pytest.importorskip("tokenizers")
    generator = small_generator(tmp_path, parallel=3)
    rng = np.random.default_rng(0)
    text = rng.integers(0, 256, 200).tolist()

    def fresh(tokens: list[int]) -> np.ndarray:
        with generator.sequence() as sequence:
            return sequence.append(tokens)

    first = generator.sequence()
    first.append(text[:100])
    second, third = first.fork(), first.fork()
    third.truncate(70)
    found = generator.append({first: text[100:101], second: [7] * 30, third: text[:90]})
    for sequence in (first, second, third):
        np.testing.assert_array_equal(found[sequence], fresh(sequence.tokens))
    first.truncate(64)
    np.testing.assert_array_equal(first.append(text[64:150], wanted=5)[-1:], fresh(text[:150]))
    assert generator.generate(text[:150], max_tokens=1, temperature=0).tokens == [int(fresh(text[:150]).argmax())]

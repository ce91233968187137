"""The sampler against the definition of sampling in f64, and its promises: seeds, batches, probabilities, errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from sampling_definition import adjusted, chosen, kept

from glow_mlir.errors import ExecutionError, InputError, OptionError
from glow_mlir.generation.sampler import Choice, RowRequest, Sampler
from glow_mlir.generation.sampling import Sampling, uniform

WORDS = 700
"""More than some counts of candidates, and no multiple of a block of tokens."""

NOTHING = np.zeros(0, np.int64)

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "all tokens": {},
    "temperature": {"temperature": 0.3},
    "hot": {"temperature": 30.0},
    "top-1": {"top_k": 1},
    "top-k": {"top_k": 40},
    "top-k of more candidates": {"top_k": 130},
    "top-k of nearly all": {"top_k": 690},
    "top-k of too many": {"top_k": 100_000},
    "top-p": {"top_p": 0.6},
    "top-p of nearly all": {"top_p": 0.999},
    "top-p of none": {"top_p": 0.0},
    "top-k and top-p": {"top_k": 40, "top_p": 0.8},
    "min-p": {"min_p": 0.05},
    "min-p of the first": {"min_p": 1.0},
    "top-p and min-p": {"top_p": 0.99, "min_p": 0.02},
    "typical": {"typical_p": 0.3},
    "typical of nearly all": {"typical_p": 0.995},
    "typical and top-k": {"typical_p": 0.5, "top_k": 50},
    "all": {"temperature": 0.7, "top_k": 50, "typical_p": 0.9, "top_p": 0.9, "min_p": 0.02},
    "all of all": {"temperature": 1.7, "typical_p": 0.95, "top_p": 0.95, "min_p": 0.01},
    "repetition": {"repetition_penalty": 1.3, "top_k": 20},
    "repetition rewarded": {"repetition_penalty": 0.7, "temperature": 0.0},
    "presence and frequency": {"presence_penalty": 0.5, "frequency_penalty": 0.25, "top_k": 20},
    "bias": {"logit_bias": {3: 5.0, 699: -2.0, 17: float("-inf")}, "top_p": 0.9},
    "bias and penalties": {"logit_bias": {3: 5.0}, "repetition_penalty": 1.3, "frequency_penalty": -0.2},
}


@pytest.fixture(scope="module")
def sampler() -> Sampler:
    """A sampler that all tests of the module share, with its programs."""
    return Sampler(WORDS)


def random_logits(random: np.random.Generator, rows: int, kind: str) -> np.ndarray:
    """Logits of a language model's spread; `tied` ones have few different values."""
    logits = random.standard_normal((rows, WORDS)) * 3
    if kind == "peaked":
        logits[:, random.integers(0, WORDS, 10)] += np.linspace(4, 12, 10)
    return (np.round(logits) if kind == "tied" else logits).astype(np.float32)


@pytest.mark.parametrize("options", [pytest.param(options, id=name) for name, options in OPTIONS.items()])
@pytest.mark.parametrize("kind", ["spread", "peaked", "tied"])
def test_tokens_are_those_of_the_definition(sampler: Sampler, options: Mapping[str, Any], kind: str) -> None:
    random = np.random.default_rng(3)
    logits = random_logits(random, 24, kind)
    sampling = Sampling(seed=5, **options)
    requests: list[RowRequest] = []
    for number in range(len(logits)):
        history = random.integers(0, WORDS, 40 + number)
        mask = random.random(WORDS) < 0.5 if number % 3 == 0 else None
        requests.append(RowRequest(sampling, history, 20, number, mask))
    expected = [
        chosen(row, sampling, request.history, 20, uniform(5, request.position), request.mask)[0]
        for row, request in zip(logits, requests, strict=True)
    ]
    assert [choice.token for choice in sampler.choose(logits, requests)] == expected


def test_rows_do_not_depend_on_each_other(sampler: Sampler) -> None:
    random = np.random.default_rng(0)
    logits = random_logits(random, 8, "spread")
    given: list[dict[str, Any]] = [{"top_k": 40}, {"top_p": 0.9}, {}, {"temperature": 0.0}] * 2
    requests = [
        RowRequest(Sampling(seed=row, **options), random.integers(0, WORDS, 30), 10, row)
        for row, options in enumerate(given)
    ]
    together = sampler.choose(logits, requests)
    assert together == [sampler.choose(logits[row : row + 1], [requests[row]])[0] for row in range(8)]


def test_the_seed_and_the_position_decide(sampler: Sampler) -> None:
    logits = np.zeros((1, WORDS), np.float32)

    def token(position: int, **options: Any) -> int:
        return sampler.choose(logits, [RowRequest(Sampling(**options), NOTHING, 0, position)])[0].token

    tokens = [token(position, seed=1) for position in range(20)]
    assert tokens == [token(position, seed=1) for position in range(20)]
    assert len(set(tokens)) > 10
    assert tokens != [token(position, seed=2) for position in range(20)]
    assert len({token(0) for _ in range(20)}) > 10, "without a seed, numbers are fresh"


@pytest.mark.parametrize("words", [1, 2, 63, 512, 513])
@pytest.mark.parametrize("options", [{}, {"top_p": 0.7}, {"top_k": 5}, {"typical_p": 0.7}], ids=str)
def test_small_vocabularies(words: int, options: Mapping[str, Any]) -> None:
    logits = np.random.default_rng(words).standard_normal((6, words)).astype(np.float32)
    sampling = Sampling(seed=9, **options)
    found = Sampler(words).choose(logits, [RowRequest(sampling, NOTHING, 0, row) for row in range(6)])
    expected = [chosen(logits[row], sampling, NOTHING, 0, uniform(9, row))[0] for row in range(6)]
    assert [choice.token for choice in found] == expected


@pytest.mark.parametrize("form", ["bool", "uint8", "int32", "uint32"])
def test_masks_in_all_forms(sampler: Sampler, form: str) -> None:
    allowed = np.zeros(WORDS, np.bool_)
    allowed[[31, 32, 699]] = True
    bits = np.packbits(np.pad(allowed, (0, -WORDS % 32)), bitorder="little")
    mask = bits.view(form) if form.endswith("32") else allowed.astype(form)
    logits = np.zeros((60, WORDS), np.float32)
    requests = [RowRequest(Sampling(seed=1), NOTHING, 0, row, mask) for row in range(60)]
    assert {choice.token for choice in sampler.choose(logits, requests)} == {31, 32, 699}


def test_probabilities_are_the_models(sampler: Sampler) -> None:
    logits = random_logits(np.random.default_rng(1), 1, "tied")
    options: dict[str, Any] = {"temperature": 0.1, "logit_bias": {8: 50.0}, "seed": 1}
    _, expected = chosen(logits[0], Sampling(**options), NOTHING, 0, 0.0)
    for wanted in (0, 1, 5, 9):
        (choice,) = sampler.choose(logits, [RowRequest(Sampling(logprobs=wanted, **options), NOTHING, 0, 0)])
        order = np.argsort(-logits[0], kind="stable")[:wanted]
        assert choice.token == 8
        assert choice.logprob == pytest.approx(expected[8], rel=1e-12)
        assert choice.alternatives is not None
        assert [token for token, _ in choice.alternatives] == order.tolist()
        assert [number for _, number in choice.alternatives] == pytest.approx(expected[order].tolist(), rel=1e-12)
    plain = sampler.choose(logits, [RowRequest(Sampling(**options), NOTHING, 0, 0)])
    assert plain == [Choice(8)]


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.0}, {"top_k": 5}, {"top_p": 0.5}, {"typical_p": 0.5}], ids=str
)
def test_logits_without_a_choice(sampler: Sampler, options: Mapping[str, Any], number: float) -> None:
    logits = np.zeros((1, WORDS), np.float32)
    logits[0, 600] = number
    with pytest.raises(ExecutionError, match="no token can be chosen"):
        sampler.choose(logits, [RowRequest(Sampling(**options), NOTHING, 0, 0)])
    nothing = np.zeros(WORDS, np.bool_)
    with pytest.raises(ExecutionError, match="no token can be chosen"):
        sampler.choose(np.zeros((1, WORDS), np.float32), [RowRequest(Sampling(**options), NOTHING, 0, 0, nothing)])


@pytest.mark.parametrize(
    ("options", "history", "mask", "message"),
    [
        ({"logit_bias": {WORDS: 1.0}}, NOTHING, None, "logit_bias has the token 700, of a vocabulary of 700"),
        ({"repetition_penalty": 2.0}, np.array([3, -1]), None, "the history has the token -1"),
        ({}, NOTHING, np.zeros(3, np.bool_), r"a mask must be bool or uint8\[700\] or int32\[22\], not bool\[3\]"),
    ],
)
def test_arguments_out_of_range(
    sampler: Sampler, options: Mapping[str, Any], history: np.ndarray, mask: np.ndarray | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sampler.choose(np.zeros((1, WORDS), np.float32), [RowRequest(Sampling(**options), history, 0, 0, mask)])


def test_logits_of_another_form(sampler: Sampler) -> None:
    with pytest.raises(InputError, match=r"logits must be float32\[1, 700\], not float64\[1, 700\]"):
        sampler.choose(np.zeros((1, WORDS)), [RowRequest(Sampling(), NOTHING, 0, 0)])


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("temperature", -0.1, "numbers from 0 to 1000000000"),
        ("temperature", float("nan"), "numbers from 0 to 1000000000"),
        ("top_k", 1.5, "whole numbers from 0 on"),
        ("top_p", 1.01, "numbers from 0 to 1"),
        ("min_p", True, "numbers from 0 to 1"),
        ("repetition_penalty", 0, "numbers above 0"),
        ("presence_penalty", float("inf"), "finite numbers"),
        ("seed", 1 << 64, "whole numbers from -9223372036854775808 to 18446744073709551615"),
        ("logprobs", 1025, "whole numbers from 0 to 1024"),
        ("logit_bias", {-3: 1.0}, "whole numbers from 0 on"),
        ("logit_bias", {3: float("inf")}, "numbers from -inf to 1000000000"),
    ],
)
def test_options_out_of_range(name: str, value: object, hint: str) -> None:
    with pytest.raises(OptionError, match=f"{name}.* cannot be .* \\(hint: {hint}\\)"):
        Sampling(**{name: value})  # pyright: ignore[reportArgumentType]


def check_frequencies(sampler: Sampler, options: Mapping[str, Any], draws: int) -> None:
    """Fail if draws are as far from the definition's probabilities as one in a million is (χ²)."""
    scipy_stats = pytest.importorskip("scipy.stats")
    logits = random_logits(np.random.default_rng(8), 1, "peaked")
    sampling = [Sampling(seed=seed, **options) for seed in range(10)]
    counts = np.zeros(WORDS)
    for draw in range(draws):
        request = RowRequest(sampling[draw % 10], NOTHING, 0, draw // 10)
        counts[sampler.choose(logits, [request])[0].token] += 1
    ids, weights = kept(adjusted(logits[0], sampling[0], NOTHING, 0, None), sampling[0])
    expected = weights / weights.sum() * draws
    is_rare = expected < 5
    assert counts.sum() == counts[ids].sum(), "a token that is not kept was chosen"
    observed = np.append(counts[ids][~is_rare], counts[ids][is_rare].sum())
    wanted = np.append(expected[~is_rare], expected[is_rare].sum())
    statistic = np.sum((observed - wanted) ** 2 / np.maximum(wanted, 1e-9))
    assert scipy_stats.chi2.sf(statistic, len(wanted) - 1) > 1e-6


def test_frequencies(sampler: Sampler) -> None:
    check_frequencies(sampler, {"top_k": 40, "top_p": 0.95}, 3000)


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"top_k": 40, "top_p": 0.95}, {"top_p": 0.9}, {"typical_p": 0.9}], ids=str)
def test_frequencies_of_many_draws(sampler: Sampler, options: Mapping[str, Any]) -> None:
    check_frequencies(sampler, options, 100_000)

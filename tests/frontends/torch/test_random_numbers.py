"""PyTorch's random numbers: their types, ranges and distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from traced_operators import computed

COUNT = 20000
SIZES = (100, COUNT // 100)
LIKE = np.zeros(SIZES)


def drawn(target: str, *arguments: Any, dtype: Any = np.float64, sizes: Sequence[int] = SIZES) -> np.ndarray:
    """The numbers that an operator draws in that type."""
    (found,) = computed(f"aten.{target}", arguments, [np.zeros(sizes, dtype)])
    assert found.dtype == dtype
    assert found.shape == tuple(sizes)
    return found


DISTRIBUTIONS: Mapping[str, tuple[Sequence[Any], Callable[[np.ndarray], np.ndarray]]] = {
    "rand.default": ((SIZES,), lambda x: x),
    "uniform.default": ((LIKE, -2.0, 6.0), lambda x: (x + 2) / 8),
    "randn.default": ((SIZES,), lambda x: np.vectorize(math.erf)(x / math.sqrt(2)) / 2 + 0.5),
    "normal_functional.default": (
        (LIKE, 3.0, 0.5),
        lambda x: np.vectorize(math.erf)((x - 3) * 2 / math.sqrt(2)) / 2 + 0.5,
    ),
    "normal.Tensor_float": (
        (np.full(SIZES, 3.0), 0.5),
        lambda x: np.vectorize(math.erf)((x - 3) * 2 / math.sqrt(2)) / 2 + 0.5,
    ),
    "log_normal.default": (
        (LIKE, 1.0, 2.0),
        lambda x: np.vectorize(math.erf)((np.log(x) - 1) / 2 / math.sqrt(2)) / 2 + 0.5,
    ),
    "exponential.default": ((LIKE, 2.0), lambda x: 1 - np.exp(-2 * x)),
    "cauchy.default": ((LIKE, 1.0, 3.0), lambda x: np.arctan((x - 1) / 3) / math.pi + 0.5),
}
"""Operator → arguments, and the share of numbers that lie below each."""


@pytest.mark.parametrize("target", DISTRIBUTIONS)
def test_distribution(target: str) -> None:
    """The shares are those of the distribution, as far as so many numbers tell (Kolmogorov and Smirnov, 1 in 10⁶)."""
    arguments, share = DISTRIBUTIONS[target]
    shares = np.sort(share(drawn(target, *arguments)).reshape(-1))
    places = (np.arange(COUNT) + 0.5) / COUNT
    assert np.abs(shares - places).max() < 2.7 / math.sqrt(COUNT)


@pytest.mark.parametrize(
    ("target", "arguments"),
    [
        ("randint.low", (-3, 5, SIZES)),
        ("randint_like.low_dtype", (LIKE, -3, 5)),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_whole_numbers(target: str, arguments: Sequence[Any], dtype: Any) -> None:
    """Each of them comes as often."""
    numbers, counts = np.unique(drawn(target, *arguments, dtype=dtype), return_counts=True)
    assert numbers.tolist() == list(range(-3, 5))
    assert np.abs(counts / COUNT - 1 / 8).max() < 5 * math.sqrt(1 / 8 * 7 / 8 / COUNT)


def test_permutation() -> None:
    found = drawn("randperm.default", 500, dtype=np.int64, sizes=(500,))
    assert sorted(found.tolist()) == list(range(500))
    assert found.tolist() != list(range(500))


def test_trials_up_to_a_success() -> None:
    found = drawn("geometric.default", LIKE, 0.25)
    assert found.min() == 1
    assert np.mean(found) == pytest.approx(4, abs=5 * math.sqrt(12 / COUNT))
    assert np.mean(found == 1) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("is_replaced", [True, False])
def test_classes(is_replaced: bool) -> None:
    """As often as weights say; without replacement, each once."""
    weights = np.tile(np.array([1.0, 0.0, 3.0, 4.0]), (5000, 1))
    count = 3
    found = drawn("multinomial.default", weights, count, is_replaced, dtype=np.int64, sizes=(5000, count))
    shares = np.bincount(found[:, 0], minlength=4) / len(found)
    np.testing.assert_allclose(shares, [1 / 8, 0, 3 / 8, 4 / 8], atol=0.035)
    assert is_replaced or all(len(set(row)) == count for row in found.tolist())


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_dropout(name: str) -> None:
    """What is kept is scaled, and the mask says what that is."""
    x = np.linspace(1, 2, COUNT).reshape(SIZES).astype(np.dtype(name))
    found, mask = computed("aten.native_dropout.default", (x, 0.25, True), [x, x > 0])
    assert np.mean(mask) == pytest.approx(0.75, abs=0.02)
    np.testing.assert_allclose(found, np.where(mask, x / np.dtype(name).type(0.75), 0), rtol=1e-6)
    same, mask = computed("aten.native_dropout.default", (x, 0.25, False), [x, x > 0])
    assert mask.all()
    np.testing.assert_array_equal(same, x)

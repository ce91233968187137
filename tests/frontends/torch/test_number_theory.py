"""PyTorch's divisors and multiples of integers against numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from traced_operators import MOST, computed, size

# Neighbors among Fibonacci's numbers take the most steps.
ONE = np.array([12, 0, -18, 7, 9 << 40, 4660046610375530309, 0], np.int64)
OTHER = np.array([18, 0, 4, 0, 15 << 39, 7540113804746346429, -5], np.int64)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_divisors(backend: str) -> None:
    (found,) = computed("aten.gcd.default", (ONE, OTHER), [ONE], backend=backend)
    np.testing.assert_array_equal(found, np.gcd(ONE, OTHER))


def test_multiples() -> None:
    one, other = ONE[:5, None], OTHER[:5]
    expected = np.lcm(one, other)
    (found,) = computed("aten.lcm.default", (one, other), [expected])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_divisors_of_other_integers(dtype: type) -> None:
    one, other = np.array([200, 9, 0], dtype), np.array([75, 0, 0], dtype)
    (found,) = computed("aten.gcd.default", (one, other), [one])
    np.testing.assert_array_equal(found, [25, 9, 0])


def test_no_divisors() -> None:
    none = np.zeros((0, 3), np.int64)
    assert computed("aten.gcd.default", (none, none), [none])[0].shape == (0, 3)


def test_divisors_of_any_number() -> None:
    assert len(ONE) <= MOST
    sizes = [size("s0")]
    (found,) = computed("aten.gcd.default", (ONE, ONE), [ONE], free={0: sizes, 1: sizes}, result_sizes=[sizes])
    np.testing.assert_array_equal(found, abs(ONE))

"""PyTorch's incomplete Gamma functions against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from traced_operators import computed

X = np.array([1e-8, 0.1, 0.9, 1.0, 1.5, 3.0, 7.0, 20.0, 90.0])


def shares(a: np.ndarray, x: np.ndarray, backend: str = "interpreter") -> list[np.ndarray]:
    """What lies below and above."""
    result = np.zeros(np.broadcast_shapes(a.shape, x.shape))
    return [computed(f"aten.{name}.default", (a, x), [result], backend=backend)[0] for name in ("igamma", "igammac")]


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_whole_numbers(backend: str) -> None:
    """Above is e^-x Σ x^k / k! of the k below a."""
    a = np.array([[1.0], [2], [5], [30]])
    above = np.array(
        [[math.exp(-x) * math.fsum(x**k / math.factorial(k) for k in range(int(n))) for x in X] for (n,) in a]
    )
    found = shares(a, X, backend=backend)
    np.testing.assert_allclose(found[1], above, rtol=1e-12)
    np.testing.assert_allclose(found[0], 1 - np.array(above), rtol=1e-9, atol=1e-15)


def test_halves() -> None:
    found = shares(np.array([0.5]), X)
    np.testing.assert_allclose(found[0], [math.erf(math.sqrt(x)) for x in X], rtol=1e-12)
    np.testing.assert_allclose(found[1], [math.erfc(math.sqrt(x)) for x in X], rtol=1e-11)


def test_ends() -> None:
    a, x = np.array([0, 0, 1, -1, 1, math.inf, 1, math.inf]), np.array([0, 1, 0, 1, -1, 1, math.inf, math.inf])
    below = np.array([math.nan, 1, 0, math.nan, math.nan, 0, 1, math.nan])
    found = shares(a, x)
    np.testing.assert_array_equal(found[0], below)
    np.testing.assert_array_equal(found[1], 1 - below)

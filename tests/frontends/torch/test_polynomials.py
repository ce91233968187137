"""PyTorch's orthogonal polynomials against numpy's, and against what angles make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre
from traced_operators import computed

POLYNOMIALS: dict[str, Any] = {
    "chebyshev_polynomial_t": Chebyshev,
    "hermite_polynomial_h": Hermite,
    "hermite_polynomial_he": HermiteE,
    "laguerre_polynomial_l": Laguerre,
    "legendre_polynomial_p": Legendre,
}

X = np.array([-1.5, -1.0, -0.3, 0.0, 0.7, 1.0, 2.5])


def value_of(name: str, x: Any, degree: Any, **keywords: Any) -> np.ndarray:
    """What polynomials give for numbers in f64."""
    overload = "x_scalar" if isinstance(x, float) else "n_scalar" if isinstance(degree, int) else "default"
    result = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(degree)))
    (found,) = computed(f"aten.special_{name}.{overload}", (x, degree), [result], **keywords)
    return found


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str, backend: str) -> None:
    degrees = np.array([[0.0], [1], [2], [3.9], [6], [9]])
    expected = [POLYNOMIALS[name].basis(int(degree))(X) for (degree,) in degrees]
    np.testing.assert_allclose(value_of(name, X, degrees, backend=backend), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_degrees_that_are_numbers(name: str) -> None:
    np.testing.assert_allclose(value_of(name, X, 5), POLYNOMIALS[name].basis(5)(X), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(value_of(name, X, -1), np.zeros_like(X))
    np.testing.assert_array_equal(value_of(name, 0.5, np.array([0, 0])), [1, 1])


KINDS: dict[str, Callable[[float, np.ndarray], np.ndarray]] = {
    "t": lambda n, angle: np.cos(n * angle),
    "u": lambda n, angle: np.sin((n + 1) * angle) / np.sin(angle),
    "v": lambda n, angle: np.cos((n + 0.5) * angle) / np.cos(angle / 2),
    "w": lambda n, angle: np.sin((n + 0.5) * angle) / np.sin(angle / 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind: str) -> None:
    """High degrees between -1 and 1 take no loop."""
    angle = np.array([0.3, 1.1, 2.6])
    for degree in (2, 5, 8, 1 << 40):
        expected = KINDS[kind](float(degree), np.arccos(np.cos(angle)))
        tolerance = 1e-12 if degree < 9 else 1e-2
        found = value_of(f"chebyshev_polynomial_{kind}", np.cos(angle), degree)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        shifted = value_of(f"shifted_chebyshev_polynomial_{kind}", (np.cos(angle) + 1) / 2, degree)
        np.testing.assert_allclose(shifted, expected, rtol=tolerance, atol=tolerance)


def test_degrees_beyond_the_limit() -> None:
    np.testing.assert_array_equal(np.isnan(value_of("hermite_polynomial_h", 0.0, np.array([1000, 2]))), [True, False])

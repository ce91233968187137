"""PyTorch's special functions against identities and known values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from traced_operators import computed

EULER = 0.57721566490153286
"""The constant of Euler and Mascheroni."""


def value_of(target: str, *numbers: float, before: tuple[int, ...] = ()) -> np.ndarray:
    """What a function gives for numbers in f64."""
    x = np.array(numbers, np.float64)
    (found,) = computed(f"aten.{target}.default", (*before, x), [x])
    return found


@pytest.mark.parametrize("x", [-30.0, -1.5, -0.3, 0.0, 0.7, 1.0, 3.0, 9.0, 20.0])
def test_error_functions(x: float) -> None:
    """The tail has all digits where 1 - erf has none."""
    (tail,) = value_of("erfc", x)
    assert tail == pytest.approx(math.erfc(x), rel=1e-13)
    if abs(x) < 20:
        (scaled,) = value_of("special_erfcx", x)
        assert scaled == pytest.approx(math.exp(x * x) * math.erfc(x), rel=1e-11)


def test_inverse_of_the_error_function() -> None:
    numbers = [-3.0, -0.8, -1e-3, 0.0, 0.4, 1.2, 2.9]
    np.testing.assert_allclose(value_of("erfinv", *map(math.erf, numbers)), numbers, rtol=1e-10)
    np.testing.assert_array_equal(value_of("erfinv", -1, 1, 1.5), [-math.inf, math.inf, math.nan])


@pytest.mark.parametrize("x", [-170.3, -2.5, -0.1, 1e-5, 0.5, 1.0, 2.0, 9.7, 1e5, 1e200])
def test_logarithm_of_gamma(x: float) -> None:
    assert value_of("lgamma", x)[0] == pytest.approx(math.lgamma(x), rel=1e-12, abs=1e-13)


def test_poles_of_gamma() -> None:
    np.testing.assert_array_equal(value_of("lgamma", 0, -3, math.inf, -math.inf), [math.inf] * 4)
    np.testing.assert_array_equal(value_of("digamma", 0.0, -0.0, -2), [-math.inf, math.inf, math.nan])


def test_derivatives_of_gamma() -> None:
    """Known values of digamma and its derivatives, of which the reflected ones are as exact."""
    np.testing.assert_allclose(value_of("digamma", 1, 0.5), [-EULER, -EULER - 2 * math.log(2)], rtol=1e-13)
    np.testing.assert_allclose(value_of("polygamma", 1, 0.5, before=(1,)), [math.pi**2 / 6, math.pi**2 / 2], rtol=1e-13)
    assert value_of("polygamma", 1, before=(3,))[0] == pytest.approx(math.pi**4 / 15, rel=1e-13)
    for order in range(1, 5):
        low, high = value_of("polygamma", -0.7, 0.3, before=(order,))
        step = (-1) ** order * math.factorial(order) / (-0.7) ** (order + 1)
        assert high - low == pytest.approx(step, rel=1e-10)


@pytest.mark.parametrize("x", [-12.0, -0.5, 0.0, 1.0, 8.0, 30.0])
def test_bessel_functions(x: float) -> None:
    """They are what their power series gives."""
    series = [(x / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(90)]
    assert value_of("i0", x)[0] == pytest.approx(math.fsum(series), rel=1e-13)
    odd = [(x / 2) ** (2 * k + 1) / math.factorial(k) / math.factorial(k + 1) for k in range(90)]
    assert value_of("special_i1", x)[0] == pytest.approx(math.fsum(odd), rel=1e-13)
    assert value_of("special_i0e", x)[0] == pytest.approx(math.fsum(series) * math.exp(-abs(x)), rel=1e-13)


def test_quantiles_of_normal_numbers() -> None:
    """They undo the probability, in the far tail as well."""
    numbers = np.array([-37.0, -9.0, -2.5, -0.1, 0.0, 0.4, 3.0, 6.0])
    below = [0.5 * math.erfc(-number / math.sqrt(2)) for number in numbers]
    np.testing.assert_allclose(value_of("special_ndtri", *below), numbers, rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(value_of("special_ndtri", *below[:6]), numbers[:6], rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(value_of("special_ndtri", 0, 1, -0.1, 1.1), [-math.inf, math.inf, *[math.nan] * 2])


def test_spherical_bessel_function() -> None:
    found = value_of("special_spherical_bessel_j0", 0, 1e-9, -2, math.inf)
    np.testing.assert_allclose(found, [1, 1, math.sin(2) / 2, 0], rtol=1e-15)

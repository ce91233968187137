"""PyTorch's operators that make tensors of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from traced_operators import computed


def spaced(start: object, end: object, count: int, dtype: Any, overload: str = "default") -> np.ndarray:
    """Numbers at equal distances."""
    return computed(f"aten.linspace.{overload}", (start, end, count), [np.zeros(count, dtype)])[0]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_at_equal_distances(count: int, dtype: Any) -> None:
    np.testing.assert_allclose(spaced(-3, 4.5, count, dtype), np.linspace(-3, 4.5, count), rtol=1e-6)


def test_integers_at_equal_distances() -> None:
    """They are cut off, and have more digits than an f32."""
    np.testing.assert_array_equal(spaced(0, 10**15 + 6, 7, np.int64)[[1, -1]], [166666666666667, 10**15 + 6])
    np.testing.assert_array_equal(spaced(-3.7, 4.9, 5, np.int64), [-3, -1, 0, 2, 4])
    half = np.array(0.5, np.float32)
    found = spaced(half, 3, 4, np.float32, "Tensor_Scalar")
    np.testing.assert_array_equal(found, np.array([0.5, 4 / 3, 13 / 6, 3], np.float32))

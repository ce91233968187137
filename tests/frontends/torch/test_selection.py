"""PyTorch's operators whose results have as many elements as data says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from traced_operators import computed, size

X = np.array([[3, 0, 1, 3], [0, 1, 3, 0]], np.float32)
COUNT = size("u0")


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    ("target", "arguments", "expected", "sizes"),
    [
        ("nonzero.default", (X,), [np.argwhere(X)], [(COUNT, 2)]),
        ("masked_select.default", (X, X > 0), [X[X > 0]], [(COUNT,)]),
        ("index.Tensor", (X, [X > 0]), [X[X > 0]], [(COUNT,)]),
        ("index.Tensor", (X, [None, X[0] > 0]), [X[:, X[0] > 0]], [(2, COUNT)]),
        (
            "_unique2.default",
            (X, True, True, True),
            [*np.unique(X, return_inverse=True, return_counts=True)],
            [(COUNT,), (2, 4), (COUNT,)],
        ),
        (
            "unique_dim.default",
            (X, 0),
            [*np.unique(X, axis=0, return_inverse=True, return_counts=True)],
            [(COUNT, 4), (2,), (COUNT,)],
        ),
        (
            "unique_consecutive.default",
            (np.array([1, 1, 2, 1, 1, 1]), True, True),
            [np.array([1, 2, 1]), np.array([0, 0, 1, 2, 2, 2]), np.array([2, 1, 3])],
            [(COUNT,), (6,), (COUNT,)],
        ),
    ],
)
def test_sizes_that_data_decides(
    target: str, arguments: Sequence[Any], expected: Sequence[Any], sizes: Sequence[Any], backend: str
) -> None:
    """Results have the sizes that numpy gives them, though the graph does not say them."""
    found = computed(f"aten.{target}", arguments, expected, backend=backend, result_sizes=sizes)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.reshape(-1), np.asarray(other).reshape(-1))


@pytest.mark.parametrize("count", [3, 9])
def test_number_of_places_that_is_known(count: int) -> None:
    """`nonzero_static` leaves places out, or fills them up."""
    places = np.argwhere(X)
    expected = np.full((count, 2), -7)
    expected[: len(places)] = places[:count]
    (found,) = computed("aten.nonzero_static.default", (X,), [expected], {"size": count, "fill_value": -7})
    np.testing.assert_array_equal(found, expected)

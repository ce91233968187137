"""Systems of equations with triangular matrices."""

from __future__ import annotations

import numpy as np
import pytest
from traced_operators import computed

RANDOM = np.random.default_rng(0)
MATRICES = (RANDOM.standard_normal((2, 1, 5, 5)) + 4 * np.eye(5)).astype(np.float32)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_solution(upper: bool, left: bool, unit: bool, backend: str) -> None:
    """Of matrices that broadcast, with NaN where nothing is to be read."""
    right = RANDOM.standard_normal((3, 5, 4) if left else (3, 4, 5)).astype(np.float32)
    triangle = (np.triu if upper else np.tril)(MATRICES, 0)
    if unit:
        triangle = triangle * (1 - np.eye(5, dtype=np.float32)) + np.eye(5, dtype=np.float32)
    inverse = np.linalg.inv(triangle.astype(np.float64))
    expected = (inverse @ right if left else right @ inverse).astype(np.float32)
    is_read = triangle != 0
    if unit:
        is_read &= ~np.eye(5, dtype=bool)
    given = np.where(is_read, triangle, np.nan).astype(np.float32)
    keywords = {"upper": upper, "left": left, "unitriangular": unit}
    (found,) = computed("aten.linalg_solve_triangular.default", (given, right), [expected], keywords, backend=backend)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)

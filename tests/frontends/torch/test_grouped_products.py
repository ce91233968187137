"""Products of groups of rows, each with a matrix of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from traced_operators import computed, size

RANDOM = np.random.default_rng(0)

ENDS: Sequence[Sequence[int]] = ([3, 3, 9, 10], [0, 0, 0, 10], [10, 10, 10, 10], [1, 2, 3, 7], [0, 0, 0, 0])
"""Where groups of ten rows end; behind the last one, rows are in none."""

FEW, MANY = 10, 150
"""Numbers of rows: of the one, blocks have few of them, and of the other several blocks are one group."""


def operands(rows: int, ends: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, a matrix for each group, and where groups end, which is told of ten rows."""
    values = RANDOM.standard_normal((rows, 5)).astype(np.float32)
    matrices = RANDOM.standard_normal((len(ends), 5, 7)).astype(np.float32)
    return values, matrices, np.array(ends, np.int32) * (rows // 10)


def products(rows: np.ndarray, matrices: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Each row times the matrix of its group."""
    found, start = np.zeros((len(rows), matrices.shape[2]), np.float32), 0
    for matrix, end in zip(matrices, ends, strict=True):
        found[start:end] = rows[start:end] @ matrix
        start = end
    return found


def sums(left: np.ndarray, right: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """For each group, the sum of the outer products of its rows."""
    starts = [0, *ends[:-1]]
    return np.stack([left[start:end].T @ right[start:end] for start, end in zip(starts, ends, strict=True)])


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("told", ENDS)
def test_rows_and_matrices(told: Sequence[int], rows: int, backend: str) -> None:
    """Forward and backward, of groups without rows, with one, and with several blocks."""
    values, matrices, ends = operands(rows, told)
    expected = products(values, matrices, ends)
    cotangent = RANDOM.standard_normal(expected.shape).astype(np.float32)
    for operator in ("transformers.grouped_mm_fallback.default", "aten._grouped_mm.default"):
        (found,) = computed(operator, (values, matrices, ends), [expected], backend=backend)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    wanted = [products(cotangent, matrices.transpose(0, 2, 1), ends), sums(values, cotangent, ends)]
    operator = "transformers.grouped_mm_fallback_backward.default"
    given = (values, matrices, ends, cotangent)
    for one, other in zip(computed(operator, given, wanted, backend=backend), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_columns_and_rows(backend: str) -> None:
    """Two matrices whose inner axis is in groups."""
    values, _, ends = operands(FEW, ENDS[0])
    other = RANDOM.standard_normal((FEW, 3)).astype(np.float32)
    expected = sums(values, other, ends)
    given = (np.ascontiguousarray(values.T), other, ends)
    (found,) = computed("aten._grouped_mm.default", given, [expected], backend=backend)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_rows_of_any_number(backend: str) -> None:
    """How many rows there are is known at run time only."""
    values, matrices, ends = operands(9, [3, 3, 8, 9])
    ends = np.array([3, 3, 8, 9], np.int32)
    expected = products(values, matrices, ends)
    (found,) = computed(
        "transformers.grouped_mm_fallback.default",
        (values, matrices, ends),
        [expected],
        backend=backend,
        free={0: (size("s0"), 5)},
        result_sizes=[(size("s0"), 7)],
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)

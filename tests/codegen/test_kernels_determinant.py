"""The kernel of determinants, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from execute import check, runnable_targets, sample

from glow_mlir.dialects.glow_high.linear import DetOp


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_determinants(dtype: str, target: str):
    for size in (1, 2, 3, 5, 8, 17):
        check(DetOp, sample((2, 3, size, size), dtype) / np.dtype(dtype).type(size), target=target)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1], [1, 0]],
        [[0, 0, 1], [0, 2, 0], [3, 0, 0]],
        [[1, 2, 3], [2, 4, 6], [1, 0, 1]],
        [[0, 0], [0, 0]],
        [[np.nan, 1], [1, 0]],
        [[1, 1], [1, np.nan]],
    ],
)
def test_rows_are_exchanged_and_singular_matrices_have_none(matrix: list[list[float]]):
    check(DetOp, np.array(matrix, np.float32))


def test_matrices_without_elements():
    check(DetOp, np.zeros((2, 0, 0), np.float32))

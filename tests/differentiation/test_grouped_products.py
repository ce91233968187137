"""Gradients of rows that are each multiplied by one of several matrices."""

from __future__ import annotations

import numpy as np
import pytest
from operator_gradients import check_operator, numbers

from glow_mlir.dialects.glow_high.linear import GroupedMatMulOp


@pytest.mark.parametrize("turned", [False, True])
def test_grouped_products(turned: bool) -> None:
    """Matrices that several rows are multiplied by, one, and none."""
    matrix = (3, 2) if turned else (2, 3)
    inputs = {"x": numbers(4, 2), "w": numbers(3, *matrix), "index": np.array([2, 0, -1, 2]), "bias": numbers(3, 3)}
    check_operator(GroupedMatMulOp, inputs, transpose_weights=turned)

"""Gradients of determinants."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import gradient_module
from operator_gradients import check_operator, gradients_of, numbers

from glow_mlir.dialects.glow_high.linear import DetOp
from glow_mlir.differentiation.differentiate import DifferentiatePass
from glow_mlir.differentiation.linear import MAX_ROWS
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.context import new_context


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 3, 3), (4, 4)])
def test_det(shape: tuple[int, ...]) -> None:
    check_operator(DetOp, {"x": numbers(*shape)})


def test_second_derivative() -> None:
    check_operator(DetOp, {"x": numbers(3, 3)}, order=2)


def test_singular_matrices() -> None:
    for found in gradients_of(DetOp, {"x": np.diag([0.0, 2.0, 3.0])}):
        np.testing.assert_allclose(found["dx"], np.diag([6.0, 0.0, 0.0]), atol=1e-12)


def test_large_matrices_have_none() -> None:
    x = np.eye(MAX_ROWS + 1)
    module = gradient_module(lambda emit, values: emit(DetOp, values["x"]), {"x": x}, ["x"])
    with pytest.raises(UnsupportedError, match="det of matrices of 17 rows has no gradient"):
        DifferentiatePass().apply(new_context(), module)

"""Gradients of sums of rows of tables."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import Arrays, gradient_module
from operator_gradients import check_operator, numbers

from glow_mlir.dialects.glow_high.embedding import SparseLengthsSumOp
from glow_mlir.differentiation.differentiate import DifferentiatePass
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.context import new_context

SEGMENTS = {"lengths": [2, 0, 3], "starts": [1, 1, 4], "edges": [1, 3, 3, 5]}
"""What segments of six indices are; some of these are in none."""

INDICES = np.array([3, 0, 3, 1, 0, 2])


def _inputs(bounds: str) -> Arrays:
    return {"data": numbers(4, 2), "indices": INDICES, "segments": np.array(SEGMENTS[bounds], np.int32)}


@pytest.mark.parametrize("bounds", SEGMENTS)
def test_sum(bounds: str) -> None:
    check_operator(
        SparseLengthsSumOp, _inputs(bounds), ["data", "indices", "segments", None, None, None], bounds=bounds
    )


@pytest.mark.parametrize("order", [1, 2])
def test_weights(order: int) -> None:
    given = {**_inputs("lengths"), "weights": numbers(6, seed=1)}
    operands = ["data", "indices", "segments", "weights", None, None]
    check_operator(SparseLengthsSumOp, given, operands, order=order, bounds="lengths")


def test_weights_of_codes_have_none() -> None:
    given = {**_inputs("lengths"), "data": np.zeros((4, 10), np.uint8), "weights": np.ones(6, np.float32)}
    operands = ["data", "indices", "segments", "weights"]
    module = gradient_module(
        lambda emit, v: emit(SparseLengthsSumOp, *[v[name] for name in operands], None, None, fused=True),
        given,
        ["weights"],
    )
    with pytest.raises(UnsupportedError, match="sparse_lengths_sum of quantized values has no gradient"):
        DifferentiatePass().apply(new_context(), module)

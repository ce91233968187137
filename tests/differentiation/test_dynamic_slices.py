"""Gradients of slices whose start is an operand."""

from __future__ import annotations

import numpy as np
import pytest
from operator_gradients import check_operator, numbers

from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp


@pytest.mark.parametrize("start", [-3, 0, 1, 9])
@pytest.mark.parametrize("axis", [0, 1])
def test_dynamic_slices(start: int, axis: int) -> None:
    given = {"input": numbers(4, 5), "start": np.array(start)}
    check_operator(DynamicSliceOp, given, axis=axis, size=2)
    update = numbers(2, 5, seed=1) if axis == 0 else numbers(4, 2, seed=1)
    check_operator(
        DynamicUpdateSliceOp, {"input": given["input"], "update": update, "start": given["start"]}, axis=axis
    )

"""Gradients of keys and values in one table."""

from __future__ import annotations

import numpy as np
import pytest
from operator_gradients import check_operator, numbers

from glow_mlir.dialects.glow_high.cache import ExtendCacheOp


@pytest.mark.parametrize("length", [3, 4, 6])
def test_extend_cache(length: int) -> None:
    given = {
        "past": numbers(4, 1, 4, 2),
        "rows": numbers(4, 1, 2, 2, seed=1),
        "starts": np.array([4, 1, 0, -1]),
        "ends": np.array([6, 2, 2, 1], np.int32),
    }
    check_operator(ExtendCacheOp, given, length=length)

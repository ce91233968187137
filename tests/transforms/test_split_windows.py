"""Windows that are folded along one axis after the other: their meaning, in IR and in machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execute import Case, check_all, module_of, runnable_targets
from validation import validate

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolOp, SumPoolOp

RANDOM = np.random.default_rng(11)
PLANES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 19, 21, 3), {"kernel_shape": (7, 9), "pads": (3, 4, 3, 4)}),
    ((2, 3, 19, 21), {"kernel_shape": (7, 9), "pads": (3, 0, 2, 8), "layout": "channels_first"}),
    ((1, 17, 40, 70), {"kernel_shape": (5, 5), "pads": (2, 2, 2, 2), "strides": (2, 1)}),
    ((1, 5, 40, 37), {"kernel_shape": (11, 6), "pads": (5, 0, 5, 5), "strides": (2, 2), "layout": "channels_first"}),
    ((1, 5, 40, 37), {"kernel_shape": (9, 9), "strides": (3, 4), "ceil_mode": True, "layout": "channels_first"}),
    ((1, 31, 29, 2), {"kernel_shape": (5, 7), "dilations": (3, 2), "pads": (6, 6, 6, 6)}),
    ((1, 24, 26, 1), {"kernel_shape": (8, 5), "strides": (2, 2), "pads": (1, 2, 3, 2), "ceil_mode": True}),
    ((1, 9, 8, 10, 2), {"kernel_shape": (5, 5, 3), "pads": (2, 2, 1, 2, 2, 1)}),
    ((1, 2, 9, 8, 10), {"kernel_shape": (3, 5, 5), "pads": (1, 2, 2, 1, 2, 2), "layout": "channels_first"}),
]
"""Shape of images → windows that are split."""
POOLS: list[tuple[type[HighOp], str, dict[str, Any]]] = [
    (MaxPoolOp, "float32", {}),
    (MaxPoolOp, "float16", {}),
    (MaxPoolOp, "uint8", {}),
    (MaxPoolOp, "int64", {}),
    (AvgPoolOp, "float32", {}),
    (AvgPoolOp, "float32", {"count_include_pad": True}),
    (AvgPoolOp, "float16", {"count_include_pad": True}),
    (AvgPoolOp, "float64", {}),
    (LpPoolOp, "float32", {}),
    (LpPoolOp, "float32", {"p": 3}),
    (LpPoolOp, "float16", {"p": 1}),
    (SumPoolOp, "int8", {}),
    (SumPoolOp, "uint16", {}),
    (SumPoolOp, "int32", {}),
    (SumPoolOp, "float32", {}),
]


def image(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of either sign, on a scale at which sums of halves do not overflow."""
    numbers = RANDOM.standard_normal(shape)
    if np.dtype(dtype).kind == "f":
        return numbers.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(numbers * min(limits.max, 1000), limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize(("pool", "dtype", "more"), POOLS)
def test_meaning_is_preserved(pool: type[HighOp], dtype: str, more: dict[str, Any]) -> None:
    module, inputs = module_of(*(Case(pool, image(shape, dtype), **window, **more) for shape, window in PLANES))
    is_exact = pool is MaxPoolOp or np.dtype(dtype).kind != "f"
    tolerance = 0 if is_exact else 4e-3 if dtype == "float16" else 3e-6
    count = sum(isinstance(op, pool) for op in module.walk())
    validate(module, "assign-target,split-windows", inputs, rtol=tolerance, atol=tolerance)
    assert sum(isinstance(op, MaxPoolOp | SumPoolOp) for op in module.walk()) >= 2 * count, "windows stay whole"


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize(("pool", "dtype", "more"), POOLS[::2])
def test_machine_code(pool: type[HighOp], dtype: str, more: dict[str, Any], target: str) -> None:
    cases = [Case(pool, image(shape, dtype), **window, **more) for shape, window in PLANES]
    check_all(cases, target, None if dtype != "float16" else 4e-3)


@pytest.mark.parametrize("pool", [MaxPoolOp, AvgPoolOp])
def test_nan_infinities_and_empty_windows(pool: type[HighOp]) -> None:
    """A NaN is the result of its windows alone; a window of padding alone has no largest element, and no mean."""
    given = image((1, 3, 24, 32), "float32")
    given[0, 0, 5, 7], given[0, 1, 3, 3], given[0, 1, 9, 9], given[0, 2, 20] = np.nan, np.inf, -np.inf, -np.inf
    beyond: dict[str, Any] = {"kernel_shape": (5, 5), "pads": (6, 7, 8, 5), "layout": "channels_first"}
    within: dict[str, Any] = {"kernel_shape": (5, 5), "pads": (2, 2, 2, 2), "layout": "channels_first"}
    module, inputs = module_of(*(Case(pool, given, **window) for window in (beyond, within)))
    validate(module, "assign-target,split-windows", inputs, rtol=1e-5, atol=1e-5)
    check_all([Case(pool, given, **window) for window in (beyond, within)])

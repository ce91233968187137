"""PyTorch's reductions, running totals and statistics, where they are not those of ONNX."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from traced_operators import computed, size

NAN = math.nan
X = np.array([[3, NAN, 1, 2], [0, 5, 5, -4]], np.float32)
N = np.array([[3, 1, 3, 1, 1], [2, 2, 7, 0, 0]])
T = np.array([[0, 1, 1], [0, 0, 1]], np.bool_)


def long(items: Any) -> np.ndarray:
    """Numbers as an array of i64."""
    return np.array(items, np.int64)


def single(items: Any) -> np.ndarray:
    """Numbers as an array of f32."""
    return np.array(items, np.float32)


Case = tuple[str, Sequence[Any], Mapping[str, Any], Sequence[np.ndarray]]

CASES: Mapping[str, Case] = {
    "sum of truth values": ("sum.dim_IntList", (T, (1,)), {}, [long([2, 1])]),
    "product as a truth value": ("prod.dim_int", (T, 0), {"dtype": "bool"}, [T.all(0)]),
    "sum as a truth value": ("sum.dim_IntList", (T, (0,)), {"dtype": "bool"}, [T.any(0)]),
    "sum of a scalar": ("sum.dim_IntList", (single(3), (0,)), {}, [single(3)]),
    "mean of nothing": ("mean.dim", (X[:0], (0,)), {}, [single([NAN] * 4)]),
    "any": ("any.dim", (N - 1, 1, True), {}, [np.array([[True], [True]])]),
    "any of no axes": ("any.dims", (T, ()), {}, [T]),
    "largest": ("max.dim", (X, 1), {}, [single([NAN, 5]), long([1, 1])]),
    "smallest truth": ("min.dim", (T, 0, True), {}, [T[1:], long([[0, 1, 0]])]),
    "place of all": ("argmax.default", (N,), {}, [long(7)]),
    "running largest": (
        "cummax.default",
        (X, 1),
        {},
        [single([[3, NAN, NAN, NAN], [0, 5, 5, 5]]), long([[0, 1, 1, 1], [0, 1, 2, 2]])],
    ),
    "running smallest": (
        "cummin.default",
        (N, 1),
        {},
        [np.minimum.accumulate(N, 1), long([[0, 1, 1, 3, 4], [0, 1, 1, 3, 4]])],
    ),
    "running extreme of a scalar": ("cummax.default", (single(2), 0), {}, [single(2), long(0)]),
    "running product": ("cumprod.default", (N, -1), {}, [np.cumprod(N, 1)]),
    "running sum of truth values": ("cumsum.default", (T, 1), {}, [np.cumsum(T, 1, dtype=np.int64)]),
    "running sum of exponentials": ("logcumsumexp.default", (X[1], 0), {}, [np.logaddexp.accumulate(X[1])]),
    "running sum of huge exponentials": (
        "logcumsumexp.default",
        (single([-math.inf, -math.inf, 1000, 1000]), 0),
        {},
        [single([-math.inf, -math.inf, 1000, 1000 + math.log(2)])],
    ),
    "variance": ("var.correction", (X, [1]), {"correction": 1}, [np.var(X, axis=1, ddof=1)]),
    "variance of one": ("var.correction", (X[:, :1], [1]), {"correction": 1}, [single([NAN, NAN])]),
    "variance and mean": (
        "var_mean.correction",
        (X[1:], [0, 1]),
        {"correction": 0, "keepdim": True},
        [np.var(X[1:], keepdims=True), np.mean(X[1:], keepdims=True)],
    ),
}


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str, backend: str) -> None:
    """Machine code and the interpreter give what PyTorch defines."""
    target, arguments, keywords, expected = CASES[name]
    found = computed(f"aten.{target}", arguments, expected, keywords, backend=backend)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("target", ["cummax", "cumsum", "logcumsumexp", "var.correction"])
def test_sizes_that_are_known_at_run_time(target: str, backend: str) -> None:
    """Of the axis itself."""
    axes: Any = [1] if target == "var.correction" else 1
    rows = np.array([[1, 4, 2, 3, 3]], np.float32)
    expected = {
        "cummax": [np.maximum.accumulate(rows, 1), long([[0, 1, 1, 1, 1]])],
        "cumsum": [np.cumsum(rows, 1)],
        "logcumsumexp": [np.logaddexp.accumulate(rows, 1)],
        "var.correction": [np.var(rows, axis=1, ddof=1)],
    }[target]
    sizes = [(1,) if target == "var.correction" else (1, size("n")) for _ in expected]
    name = target if "." in target else f"{target}.default"
    found = computed(
        f"aten.{name}", (rows, axes), expected, backend=backend, free={0: (1, size("n"))}, result_sizes=sizes
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)

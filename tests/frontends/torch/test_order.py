"""PyTorch's sorts, medians, searches and histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from traced_operators import computed

NAN = float("nan")
X = np.array([[3, NAN, 1, 2], [0, 5, 5, 4]], np.float32)
N = np.array([[3, 1, 3, 1, 1], [2, 2, 7, 0, 0]])
EDGES = np.array([1, 3, 3, 5], np.float32)
POINTS = np.array([0, 1, 3, 4, 6, NAN], np.float32)

Case = tuple[str, Sequence[Any], Mapping[str, Any], Sequence[Any]]


def long(items: Any) -> np.ndarray:
    """Numbers as an array of i64."""
    return np.array(items, np.int64)


def single(items: Any) -> np.ndarray:
    """Numbers as an array of f32."""
    return np.array(items, np.float32)


CASES: Mapping[str, Case] = {
    "sort": ("sort.default", (X, 1), {}, [single([[1, 2, 3, NAN], [0, 4, 5, 5]]), long([[2, 3, 0, 1], [0, 3, 1, 2]])]),
    "sort down": (
        "sort.stable",
        (N,),
        {"stable": True, "dim": 0, "descending": True},
        [long([[3, 2, 7, 1, 1], [2, 1, 3, 0, 0]]), long([[0, 1, 1, 0, 0], [1, 0, 0, 1, 1]])],
    ),
    "sort of truth": ("sort.default", (N > 2,), {}, [np.sort(N > 2), np.argsort(N > 2, axis=-1, kind="stable")]),
    "topk": ("topk.default", (X, 2), {}, [single([[NAN, 3], [5, 5]]), long([[1, 0], [1, 2]])]),
    "kthvalue": ("kthvalue.default", (N, 2, 1, True), {}, [long([[1], [0]]), long([[3], [4]])]),
    "median": ("median.dim", (X, 1), {}, [single([NAN, 4]), long([1, 3])]),
    "nanmedian": ("nanmedian.dim", (X, 1, True), {}, [single([[2], [4]]), long([[3], [3]])]),
    "median of all": ("median.default", (N,), {}, [long(1)]),
    "nanmedian of nothing": ("nanmedian.default", (X[:0],), {}, [single(NAN)]),
    "mode": ("mode.default", (N, 1), {}, [long([1, 0]), long([4, 4])]),
    "searchsorted": ("searchsorted.Tensor", (EDGES, POINTS), {}, [long([0, 0, 1, 3, 4, 4])]),
    "searchsorted right": ("searchsorted.Tensor", (EDGES, POINTS), {"side": "right"}, [long([0, 1, 3, 3, 4, 4])]),
    "searchsorted of rows": (
        "searchsorted.Tensor",
        (np.sort(N), N),
        {},
        [long([[3, 0, 3, 0, 0], [2, 2, 4, 0, 0]])],
    ),
    "searchsorted by a sorter": (
        "searchsorted.Tensor",
        (EDGES[::-1].copy(), POINTS),
        {"sorter": long([3, 2, 1, 0])},
        [long([0, 0, 1, 3, 4, 4])],
    ),
    "bucketize": ("bucketize.Tensor", (POINTS, EDGES), {"out_int32": True}, [np.array([0, 0, 1, 3, 4, 4], np.int32)]),
    "histc": ("histc.default", (POINTS, 4, 1, 5), {}, [single([1, 0, 1, 1])]),
    "histc of all": ("histc.default", (single([2, 2]), 4), {}, [single([0, 0, 2, 0])]),
    "histogram": (
        "histogram.bins_tensor",
        (POINTS, single([0, 1, 4, 6])),
        {"weight": single([1, 2, 3, 4, 5, 6])},
        [single([1, 5, 9]), single([0, 1, 4, 6])],
    ),
    "histogram of nothing": ("histogram.bin_ct", (single([]), 2), {}, [single([0, 0]), single([0, 0.5, 1])]),
    "repeat_interleave": ("repeat_interleave.Tensor", (long([2, 0, 3]),), {"output_size": 5}, [long([0, 0, 2, 2, 2])]),
}


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str, backend: str) -> None:
    """Each operator gives what its documentation says, NaN and equal elements among it."""
    target, arguments, keywords, expected = CASES[name]
    found = computed(f"aten.{target}", arguments, expected, keywords, backend=backend)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)

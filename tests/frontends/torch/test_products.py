"""PyTorch's products, distances, and sums of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from traced_operators import computed

RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal((3, 2, 4)).astype(np.float32)
B = RANDOM.standard_normal((3, 4, 5)).astype(np.float32)
C = RANDOM.standard_normal((2, 5)).astype(np.float32)
P = RANDOM.standard_normal((4, 3)).astype(np.float32)
Q = RANDOM.standard_normal((5, 3)).astype(np.float32)
TABLE = RANDOM.standard_normal((6, 3)).astype(np.float32)
INDICES, OFFSETS = np.array([4, 1, 5, 1]), np.array([0, 3, 3])
ONE, TWO, THREE = (RANDOM.standard_normal(sizes).astype(np.float32) for sizes in ((7, 3), (5, 3, 4), (7, 4)))


def norms(differences: np.ndarray, p: float) -> np.ndarray:
    """The p-norms along the last axis."""
    return np.linalg.norm(differences.astype(np.float64), p, axis=-1).astype(np.float32)


PAIRS = P[:, None] - Q
FIRST, SECOND = np.triu_indices(4, 1)

Case = tuple[str, Sequence[Any], Mapping[str, Any], np.ndarray]

CASES: Mapping[str, Case] = {
    "addbmm": ("addbmm.default", (C, A, B), {"beta": 0.5, "alpha": 2}, 0.5 * C + 2 * (A @ B).sum(0)),
    "trilinear": (
        "_trilinear.default",
        (ONE, TWO, THREE, [1, 3], [0], [1, 2], [2, 3]),
        {},
        np.einsum("nk,okl,nl->no", ONE, TWO, THREE),
    ),
    **{f"cdist {p}": ("_cdist_forward.default", (P, Q, p, None), {}, norms(PAIRS, p)) for p in (0, 1, 2, 3, math.inf)},
    "pdist": ("_pdist_forward.default", (P, 2.0), {}, norms(P[FIRST] - P[SECOND], 2)),
    "dist": ("dist.default", (P, P[::-1].copy(), 3), {}, norms((P - P[::-1]).reshape(-1), 3)),
}


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str, backend: str) -> None:
    """Each operator gives what numpy gives."""
    target, arguments, keywords, expected = CASES[name]
    (found,) = computed(f"aten.{target}", arguments, [expected.astype(np.float32)], keywords, backend=backend)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", range(3))
@pytest.mark.parametrize("padding", [-1, 1])
def test_sums_of_rows(mode: int, padding: int) -> None:
    """
    Bags of rows are summed, averaged, or compared; one without rows is 0, and padding counts for nothing.

    PyTorch gives no lengths for sums, and gives them twice for means.
    """
    bags = [[4, 1, 5], [], [1]]
    kept = [[index for index in bag if index != padding] for bag in bags]
    reduce = (np.sum, np.mean, np.max)[mode]
    expected = np.stack([reduce(TABLE[bag], axis=0) if bag else np.zeros(3, np.float32) for bag in kept])
    arguments = (TABLE, INDICES, OFFSETS, False, mode, False, None, False, padding)
    saved = [np.zeros(sizes, np.int64) for sizes in ((4,), (3,), (3, 3) if mode == 2 else (3,))]
    found, bag_of, lengths, more = computed("aten._embedding_bag.default", arguments, [expected, *saved])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert bag_of.tolist() == [0, 0, 0, 2]
    assert lengths.tolist() == [len(bag) * (mode != 0) for bag in kept]
    assert mode != 1 or more.tolist() == lengths.tolist()


@pytest.mark.parametrize(
    ("reduce", "expected"), [("sum", [3, 0, 3]), ("mean", [1.5, math.nan, 3]), ("max", [2, -math.inf, 3])]
)
def test_segments(reduce: str, expected: list[float]) -> None:
    """Segments are reduced; what lies behind them is in none."""
    value, lengths = np.array([1, 2, 3, 9], np.float32), np.array([2, 0, 1])
    wanted = np.array(expected, np.float32)
    (found,) = computed("aten.segment_reduce.default", (value, reduce), [wanted], {"lengths": lengths})
    np.testing.assert_array_equal(found, wanted)

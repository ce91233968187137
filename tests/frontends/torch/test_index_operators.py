"""PyTorch's views, borders, indices and scatters give what numpy gives, with sizes known ahead and at run time only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from traced_operators import computed, size

from glow_mlir.errors import GlowError
from glow_mlir.frontends.torch.traced_graph import Expression

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(20, dtype=np.float32).reshape(4, 5)
SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4)
ROWS = np.array([2, 0, -1])
COLUMNS = np.array([[1], [3]])
PART = np.full((2, 5), -1, np.float32)


def with_items(array: np.ndarray, index: Any, items: Any) -> np.ndarray:
    """A copy of an array in which an index has other elements."""
    found = array.copy()
    found[index] = items
    return found


def added_at(array: np.ndarray, index: Any, items: Any) -> np.ndarray:
    """A copy of an array to which elements are added, as often as an index names them."""
    found = array.copy()
    np.add.at(found, index, items)
    return found


Case = tuple[str, Sequence[Any], np.ndarray]

CASES: Mapping[str, Case] = {
    "flip": ("aten.flip.default", (X, [0, -1]), X[::-1, :, ::-1]),
    "diagonal": ("aten.diagonal.default", (X, 1, 1, 2), np.diagonal(X, 1, 1, 2)),
    "diagonal below": ("aten.diagonal.default", (M, -2), np.diagonal(M, -2)),
    "diagonal nowhere": ("aten.diagonal.default", (M, 7), np.diagonal(M, 7)),
    "unfold": ("aten.unfold.default", (M, 1, 3, 2), np.stack([M[:, 0:3], M[:, 2:5]], axis=1)),
    "repeat": ("aten.repeat.default", (M, [2, 1, 3]), np.tile(M, (2, 1, 3))),
    "as_strided": (
        "aten.as_strided.default",
        (M, [3, 2], [6, 5], 2),
        np.array([[2, 7], [8, 13], [14, 19]], np.float32),
    ),
    "as_strided_scatter": (
        "aten.as_strided_scatter.default",
        (M, np.zeros(4, np.float32), [4], [6]),
        with_items(M.reshape(-1), [0, 6, 12, 18], 0).reshape(M.shape),
    ),
    "slice_scatter": ("aten.slice_scatter.default", (M, PART, 0, 1, 3), with_items(M, slice(1, 3), -1)),
    "slice_scatter in steps": ("aten.slice_scatter.default", (M, PART, 0, -4, 9, 2), with_items(M, [0, 2], -1)),
    "select_scatter": ("aten.select_scatter.default", (M, PART[0], 0, -1), with_items(M, 3, -1)),
    "diagonal_scatter": (
        "aten.diagonal_scatter.default",
        (SQUARE, np.zeros(3, np.float32), 1),
        with_items(SQUARE, ([0, 1, 2], [1, 2, 3]), 0),
    ),
    "reflection_pad": ("aten.reflection_pad1d.default", (M, [2, 1]), np.pad(M, [(0, 0), (2, 1)], mode="reflect")),
    "replication_pad": (
        "aten.replication_pad2d.default",
        (X, [0, 2, -1, 3]),
        np.pad(X, [(0, 0), (0, 3), (0, 2)], mode="edge")[:, 1:],
    ),
    "replication_pad behind all": ("aten.replication_pad1d.default", (M, [-6, 8]), np.repeat(M[:, -1:], 7, axis=1)),
    "constant_pad": (
        "aten.constant_pad_nd.default",
        (M, [1, -2], 7.0),
        np.pad(M, [(0, 0), (1, 0)], constant_values=7)[:, :-2],
    ),
    "index": ("aten.index.Tensor", (X, [None, ROWS]), X[:, ROWS]),
    "index of neighbours": ("aten.index.Tensor", (X, [None, COLUMNS[:1], ROWS]), X[:, COLUMNS[:1], ROWS]),
    "index apart": ("aten.index.Tensor", (X, [COLUMNS % 2, None, ROWS]), X[COLUMNS % 2, :, ROWS]),
    "index_put": ("aten.index_put.default", (M, [ROWS], PART[:1]), with_items(M, ROWS, -1)),
    "index_put of columns": (
        "aten.index_put.default",
        (M, [None, COLUMNS], np.ones((4, 2, 1), np.float32), True),
        added_at(M, (slice(None), COLUMNS), 1),
    ),
    "index_put where truth": (
        "aten.index_put.default",
        (M, [M > 7], np.array(3, np.float32), True),
        np.where(M > 7, M + 3, M),
    ),
    "index_put of each where truth": (
        "aten.index_put.default",
        (X, [None, X[0] > 7], np.stack([np.arange(4, dtype=np.float32), -np.arange(4, dtype=np.float32)])),
        with_items(X, (slice(None), X[0] > 7), [np.arange(4), -np.arange(4)]),
    ),
    "put": ("aten.put.default", (M, ROWS, PART[0, :3], True), added_at(M.reshape(-1), ROWS, -1).reshape(M.shape)),
    "gather": ("aten.gather.default", (M, 0, np.array([[0, 3], [1, 1]])), np.array([[0, 16], [5, 6]], np.float32)),
    "gather of a scalar": ("aten.gather.default", (M[0, 1:2].reshape(()), 0, np.array(0)), np.array(1, np.float32)),
    "masked_scatter": (
        "aten.masked_scatter.default",
        (M, M % 3 == 0, -M),
        with_items(M, M % 3 == 0, -M.reshape(-1)[:7]),
    ),
}


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str, backend: str) -> None:
    """Each operator gives what numpy gives."""
    target, arguments, expected = CASES[name]
    (found,) = computed(target, arguments, [expected], backend=backend)
    np.testing.assert_array_equal(found, expected)


REDUCED: Mapping[tuple[str, bool], list[float]] = {
    ("sum", True): [6, 2, 9],
    ("sum", False): [5, 2, 7],
    ("prod", True): [6, 2, 24],
    ("prod", False): [6, 2, 12],
    ("mean", True): [2, 2, 3],
    ("mean", False): [2.5, 2, 3.5],
    ("amax", True): [3, 2, 4],
    ("amax", False): [3, 2, 4],
    ("amin", True): [1, 2, 2],
    ("amin", False): [2, 2, 3],
}
"""Reduction, with and without what is there → [1, 2, 2] with 2 and 3 at the first, 3 and 4 at the last place."""


@pytest.mark.parametrize("reduce", REDUCED)
def test_reduction_at_places(reduce: tuple[str, bool]) -> None:
    """`scatter_reduce` and `index_reduce` combine the same elements."""
    word, include = reduce
    value, updates = np.array([1, 2, 2], np.float32), np.array([2, 3, 3, 4], np.float32)
    places, expected = np.array([0, 0, 2, 2]), np.array(REDUCED[reduce], np.float32)
    keywords = {"include_self": include}
    for target in ("aten.scatter_reduce.two", "aten.index_reduce.default"):
        if (target, word) == ("aten.index_reduce.default", "sum"):
            continue
        (found,) = computed(target, (value, 0, places, updates, word), [expected], keywords)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_sizes_at_run_time(backend: str) -> None:
    """Parts and windows of axes of any size are what they are of an axis of that size."""
    rows, columns = size("s0"), size("s1")
    free = {0: (rows, columns)}
    cases: list[tuple[str, Sequence[Any], np.ndarray, Sequence[Any]]] = [
        ("aten.flip.default", (M, [1]), M[:, ::-1], (rows, columns)),
        ("aten.index.Tensor", (M, [ROWS]), M[ROWS], (3, columns)),
        ("aten.index_put.default", (M, [ROWS], np.array(-1, np.float32)), with_items(M, ROWS, -1), (rows, columns)),
        (
            "aten.constant_pad_nd.default",
            (M, [1, 0], 0.0),
            np.pad(M, [(0, 0), (1, 0)]),
            (rows, Expression("add", (columns, Expression("number", value=1)))),
        ),
        ("aten.diagonal.default", (SQUARE,), np.diagonal(SQUARE), (rows,)),
    ]
    for target, arguments, expected, sizes in cases:
        own = {0: (rows, rows)} if arguments[0] is SQUARE else free
        (found,) = computed(target, arguments, [expected], backend=backend, free=own, result_sizes=[sizes])
        np.testing.assert_array_equal(found, expected)


def test_memory_beyond_a_tensor() -> None:
    """A view of memory that is not the operand's is refused."""
    with pytest.raises(GlowError, match="beyond the elements of its operand"):
        computed("aten.as_strided.default", (M, [4], [7]), [np.zeros(4, np.float32)])

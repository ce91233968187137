"""Gradients of operators that take or replace elements at indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_gradients import check_operator, gradients_of, numbers

from glow_mlir.dialects.glow_high import indexing as ops

SLICES = [[1], [0], [-2], [0]]
ELEMENTS = [[1, 1], [2, 0], [1, -1], [0, 0]]
"""Rows of indices of which some are equal."""

GATHERS: dict[str, tuple[tuple[int, ...], object, int]] = {
    "rows": ((4, 3), [2, 0, 2, -1], 0),
    "columns": ((2, 4), [[3, 1], [1, -4]], -1),
    "a middle axis": ((2, 3, 2), [1, 1], 1),
    "one": ((3, 2), 1, 0),
    "none": ((3, 2), np.zeros((0,), np.int64), 0),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gather(name: str) -> None:
    shape, indices, axis = GATHERS[name]
    check_operator(ops.GatherOp, {"x": numbers(*shape), "indices": np.asarray(indices, np.int64)}, axis=axis)


@pytest.mark.parametrize(("shape", "axis"), [((2, 5), 1), ((3, 2), -2), ((1, 3), 1)])
def test_gather_elements(shape: tuple[int, int], axis: int) -> None:
    indices = np.random.default_rng(1).integers(-3, 3, shape)
    check_operator(ops.GatherElementsOp, {"x": numbers(3, 3), "indices": indices}, axis=axis)


@pytest.mark.parametrize(
    ("shape", "rows", "batch"),
    [
        ((3, 2), [[0], [2], [0]], 0),
        ((3, 2, 2), [[0, 1], [-1, 1], [0, 1]], 0),
        ((2, 3, 2), [[[0], [2]], [[1], [1]]], 1),
        ((2, 2, 3), [[[2], [2]], [[0], [-1]]], 2),
    ],
)
def test_gather_nd(shape: tuple[int, ...], rows: Any, batch: int) -> None:
    indices = np.asarray(rows, np.int32)
    check_operator(ops.GatherNDOp, {"x": numbers(*shape), "indices": indices}, batch_dims=batch)


@pytest.mark.parametrize(
    ("reduction", "axis"), [("none", 0), ("none", 1), ("add", 0), ("mul", -1), ("max", 0), ("min", -1)]
)
def test_scatter_elements(reduction: str, axis: int) -> None:
    indices = np.array([[0, 2, 0], [-1, 1, -3]])
    given = {"x": numbers(3, 3), "indices": indices, "updates": numbers(2, 3, seed=1)}
    check_operator(ops.ScatterElementsOp, given, axis=axis, reduction=reduction)


@pytest.mark.parametrize("rows", [SLICES, ELEMENTS])
@pytest.mark.parametrize("reduction", ["none", "mul", "max"])
def test_scatter_nd(reduction: str, rows: list[list[int]]) -> None:
    indices = np.array(rows)
    updates = numbers(4, *(3, 2, 2)[indices.shape[1] :], seed=1)
    check_operator(
        ops.ScatterNDOp, {"x": numbers(3, 2, 2), "indices": indices, "updates": updates}, reduction=reduction
    )


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max"])
def test_updates_that_scatters_leave_out_have_no_influence(reduction: str) -> None:
    x = numbers(3, 2, 2)
    rows = np.array([[2, 1], [0, 5], [-1, 0], [0, 0], [-4, 0], [2, 1]])
    given = {"x": x, "indices": rows, "updates": numbers(6, 2, seed=1)}
    check_operator(ops.ScatterNDOp, given, reduction=reduction, failure="")
    given = {"x": x[0], "indices": np.array([[2, 0], [-2, -3]]), "updates": numbers(2, 2, seed=1)}
    check_operator(ops.ScatterElementsOp, given, axis=0, reduction=reduction, failure="")


@pytest.mark.parametrize("zeros", [[], [1], [0, 2], [0, 1, 2]])
def test_products_of_zeros(zeros: list[int]) -> None:
    updates = numbers(4, least=1)
    updates[zeros] = 0
    check_operator(
        ops.ScatterElementsOp,
        {"x": np.array([2.0, 0.0]), "indices": np.array([0, 0, 1, 0]), "updates": updates},
        reduction="mul",
    )


@pytest.mark.parametrize(("reduction", "sign"), [("max", 1), ("min", -1)])
def test_equal_extremes_share_alike(reduction: str, sign: float) -> None:
    x, updates = sign * np.array([3.0, 0.0, 1.0]), sign * np.array([3.0, 2.0, 3.0, 2.0, 0.0])
    given = {"x": x, "indices": np.array([0, 1, 0, 1, 2]), "updates": updates}
    for found in gradients_of(ops.ScatterElementsOp, given, reduction=reduction):
        np.testing.assert_allclose(found["dx"], [1 / 3, 0, 1])
        np.testing.assert_allclose(found["dupdates"], [1 / 3, 1 / 2, 1 / 3, 1 / 2, 0])


@pytest.mark.parametrize("reduction", ["none", "mul", "max"])
def test_second_derivative_of_scatter(reduction: str) -> None:
    given = {"x": numbers(3), "indices": np.array([0, 2, 0]), "updates": numbers(3, seed=1)}
    check_operator(ops.ScatterElementsOp, given, order=2, reduction=reduction)


def test_second_derivative_of_gather() -> None:
    check_operator(ops.GatherOp, {"x": numbers(2, 3), "indices": np.array([1, 1, 0])}, order=2, axis=1)


@pytest.mark.parametrize(("batch_axis", "time_axis"), [(1, 0), (0, -1)])
def test_reverse_sequence(batch_axis: int, time_axis: int) -> None:
    given = {"x": numbers(3, 2, 3), "lengths": np.array([2, 3, 0][: 3 - batch_axis])}
    check_operator(ops.ReverseSequenceOp, given, batch_axis=batch_axis, time_axis=time_axis)


@settings(max_examples=8)
@given(st.data())
def test_gathers_of_any_shape(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    of_indices = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    indices = np.random.default_rng(0).integers(-shape[axis], shape[axis], of_indices)
    check_operator(ops.GatherOp, {"x": numbers(*shape), "indices": indices}, axis=axis)

"""Gradients of reductions, of running sums and products, and of the k largest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_gradients import check_operator, gradients_of, numbers

from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.glow_high.base import HighOp

REDUCTIONS: tuple[type[ops.Reduction], ...] = (
    ops.ReduceSumOp,
    ops.ReduceMeanOp,
    ops.ReduceProdOp,
    ops.ReduceMaxOp,
    ops.ReduceMinOp,
    ops.ReduceL1Op,
    ops.ReduceL2Op,
    ops.ReduceSumSquareOp,
    ops.ReduceLogSumOp,
    ops.ReduceLogSumExpOp,
)


def _operand(kind: type[HighOp], *shape: int) -> np.ndarray:
    """Numbers of which the operator has derivatives: logarithms are of sums above 0."""
    return numbers(*shape, least=0.5 if kind is ops.ReduceLogSumOp else -2)


@pytest.mark.parametrize("kind", REDUCTIONS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("keepdims", [True, False])
def test_reduction(kind: type[ops.Reduction], keepdims: bool) -> None:
    check_operator(kind, {"x": _operand(kind, 2, 3, 2)}, axes=(1,) if keepdims else (0, -1), keepdims=keepdims)


@pytest.mark.parametrize("kind", [ops.ReduceMeanOp, ops.ReduceProdOp], ids=lambda kind: kind.name)
@pytest.mark.parametrize("axes", [(), (0, 1)])
def test_reduction_of_nothing_and_of_everything(kind: type[ops.Reduction], axes: tuple[int, ...]) -> None:
    check_operator(kind, {"x": numbers(2, 2)}, axes=axes, keepdims=False)


@pytest.mark.parametrize(
    "kind", [ops.ReduceProdOp, ops.ReduceMaxOp, ops.ReduceL2Op, ops.ReduceLogSumExpOp], ids=lambda kind: kind.name
)
def test_second_derivative_of_reduction(kind: type[ops.Reduction]) -> None:
    check_operator(kind, {"x": _operand(kind, 2, 3)}, order=2, axes=(1,))


@pytest.mark.parametrize("zeros", [[(0, 0)], [(0, 0), (1, 2)]])
@pytest.mark.parametrize("order", [1, 2])
def test_products_of_zeros(zeros: list[tuple[int, int]], order: int) -> None:
    x = numbers(2, 3)
    for place in zeros:
        x[place] = 0
    check_operator(ops.ReduceProdOp, {"x": x}, order=order, axes=(0, 1))


TIES: dict[str, tuple[type[HighOp], list[float], list[float]]] = {
    "largest": (ops.ReduceMaxOp, [1, 3, 3, 0, 3], [0, 1 / 3, 1 / 3, 0, 1 / 3]),
    "smallest": (ops.ReduceMinOp, [1, 0, 3, 0], [0, 0.5, 0, 0.5]),
    "absolute values of zeros": (ops.ReduceL1Op, [0, -2, 0], [0, -1, 0]),
    "the norm of zeros": (ops.ReduceL2Op, [0, 0, 0], [0, 0, 0]),
    "infinite exponentials": (ops.ReduceLogSumExpOp, [-np.inf, 1000, 0], [0, 1, 0]),
}
"""What `torch` says of edge cases: an operand, and its gradient."""


@pytest.mark.parametrize("name", TIES)
def test_edge_case(name: str) -> None:
    kind, x, expected = TIES[name]
    for found in gradients_of(kind, {"x": np.array(x, np.float64)}, axes=(0,)):
        np.testing.assert_allclose(found["dx"], expected, rtol=1e-12)


def test_mean_of_more_half_floats_than_they_count() -> None:
    x = np.zeros((70000,), np.float16)
    for found in gradients_of(ops.ReduceMeanOp, {"x": x}, axes=(0,)):
        np.testing.assert_array_equal(found["dx"], np.full_like(x, np.float16(1 / 70000)))


@pytest.mark.parametrize("kind", [ops.CumSumOp, ops.CumProdOp], ids=lambda kind: kind.name)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running(kind: type[HighOp], exclusive: bool, reverse: bool) -> None:
    x = numbers(3, 3)
    x[0, 1] = x[1, 0] = x[1, 1] = 0
    check_operator(kind, {"x": x}, axis=int(reverse) - 1, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("exclusive", [False, True])
def test_second_derivative_of_running_products(exclusive: bool) -> None:
    check_operator(ops.CumProdOp, {"x": numbers(4)}, order=2, axis=0, exclusive=exclusive)


@pytest.mark.parametrize(("axis", "largest"), [(0, True), (-1, False)])
def test_top_k(axis: int, largest: bool) -> None:
    check_operator(ops.TopKOp, {"x": numbers(3, 4)}, k=2, axis=axis, largest=largest)


@settings(max_examples=8)
@given(st.data())
def test_reductions_of_any_shape(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 3), max_size=3))
    axes = data.draw(st.sets(st.sampled_from(range(len(shape)))) if shape else st.just(set[int]()))
    kind = data.draw(st.sampled_from(REDUCTIONS))
    keepdims = data.draw(st.booleans())
    check_operator(kind, {"x": _operand(kind, *shape)}, axes=tuple(axes), keepdims=keepdims)

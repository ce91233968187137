"""The kernels of decision trees, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from execute import Case, check, check_all
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import RandomTrees, binned_operands, tree_model, tree_operands

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.trees import AGGREGATES, BinnedTreeEnsembleOp, TreeEnsembleOp

TARGETS = ("scalar", "avx2", "host")
RANGES = ((0, 17), (2, 3), (1, 40), (0, 5))


def rows(count: int, dtype: Any = np.float32) -> np.ndarray:
    """Features of so many rows."""
    return RandomTrees(1, dtype=dtype).rows(count)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nodes(target: str, dtype: Any) -> None:
    cases: list[Case] = []
    for number, aggregate in enumerate(AGGREGATES):
        for named in (1, 3):
            made = RandomTrees(number, trees=11, depth=6, targets=3, weights_a_leaf=named, dtype=dtype)
            nodes, _, roots, weights, targets = tree_operands(made)
            x = rows(21, dtype)
            cases.append(Case(TreeEnsembleOp, x, nodes, None, roots, weights, targets, size=3, aggregate=aggregate))
            if named == 3:
                properties: dict[str, Any] = {"size": 3, "test": 12, "aggregate": aggregate}
                cases.append(Case(TreeEnsembleOp, x, nodes, None, roots, weights, None, **properties))
    check_all(cases, target)


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 10**6), count=st.integers(1, 20), relations=st.lists(st.integers(0, 15), min_size=1))
def test_tests_of_nodes(seed: int, count: int, relations: list[int]) -> None:
    made = RandomTrees(seed, trees=1 + seed % 9, depth=5, share=0.9, positive=True)
    if any(node["mode"] != "LEAF" for node in made.nodes):
        check(TreeEnsembleOp, rows(count), *tree_operands(made, relations), size=1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [1, 6, 7, 63, 65, 200, 530])
@pytest.mark.parametrize("linked", [0, 13])
def test_binned_trees(target: str, count: int, linked: int) -> None:
    operands = binned_operands(9, 4, RANGES, linked=linked)
    check(BinnedTreeEnsembleOp, rows(count), *operands, target=target, size=1, relations=(3, 5, 10), counts=(2, 1, 1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("depth", [1, 2, 5, 6, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_depths_of_binned_trees(target: str, depth: int, dtype: Any) -> None:
    cases: list[Case] = []
    for linked in (0, min(2**depth - 1, 40)):
        operands = binned_operands(5, depth, RANGES, dtype=dtype, linked=linked)
        cases += [
            Case(BinnedTreeEnsembleOp, rows(count, dtype), *operands, size=1, relations=(1,), counts=(4,))
            for count in (2, 70)
        ]
    check_all(cases, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("linked", [0, 5])
def test_targets_of_binned_trees(target: str, aggregate: str, linked: int) -> None:
    named = binned_operands(9, 3, RANGES, size=4, linked=linked)
    all_ = binned_operands(9, 3, RANGES, columns=4, linked=linked)
    properties: dict[str, Any] = {"size": 4, "relations": (6,), "counts": (4,), "aggregate": aggregate}
    operands = [(rows(count), *operands) for operands in (named, all_) for count in (3, 75)]
    check_all([Case(BinnedTreeEnsembleOp, *given, **properties) for given in operands], target)


@settings(max_examples=examples(20))
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 700),
    relations=st.lists(st.integers(0, 15), min_size=1, max_size=4, unique=True),
    constant=st.booleans(),
    share=st.sampled_from([0.6, 0.9, 1.0]),
)
def test_trees_as_constants(seed: int, count: int, relations: list[int], constant: bool, share: float) -> None:
    made = RandomTrees(seed, 1 + seed % 30, depth=1 + seed % 8, share=share, targets=1 + seed % 2, positive=True)
    if any(node["mode"] != "LEAF" for node in made.nodes):
        operands = tree_operands(made, relations)
        known = tuple(place for place in range(1, 6) if operands[place - 1] is not None) if constant else ()
        check(TreeEnsembleOp, rows(count), *operands, constants=known, size=made.targets)


@pytest.mark.parametrize("kind", ["nodes", "complete", "linked"])
def test_sums_do_not_depend_on_the_rows_beside(kind: str) -> None:
    depth, share = {"nodes": (9, 0.95), "complete": (4, 1.0), "linked": (14, 0.75)}[kind]
    made = RandomTrees(2, 13, depth=depth, share=share, modes=("LEQ",))
    x = made.rows(700)
    model = tree_model("TreeEnsembleRegressor", made.older("target", n_targets=1), x, rows="rows")
    session = InferenceSession(model, dimensions={"rows": (1, 700)}, threads=1, cache=False)
    (whole,) = session.run(None, {"x": x})
    for begin, end in ((0, 1), (3, 40), (5, 75), (0, 530), (699, 700)):
        (part,) = session.run(None, {"x": x[begin:end]})
        np.testing.assert_array_equal(part, whole[begin:end])

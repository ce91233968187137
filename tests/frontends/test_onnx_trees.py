"""ONNX's ensembles of decision trees compute what onnxruntime does, by the interpreter and by machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from other_runtimes import by_onnxruntime, by_reference
from random_trees import MODES, RandomTrees, tree_model

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError, ModelError
from glow_mlir.frontends.onnx.importer import import_model

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("SUM", "AVERAGE", "MIN", "MAX")


def assert_agrees(
    model: onnx.ModelProto, x: np.ndarray, expected: list[np.ndarray] | None = None, atol: float = 1e-5
) -> None:
    """Fail where one of our backends differs from onnxruntime, or from what is expected."""
    wanted = list(by_onnxruntime(model, {"x": x}).values()) if expected is None else expected
    for backend in ("interpreter", "cpu"):
        found = InferenceSession(model, backend=backend, cache=False).run(None, {"x": x})
        for ours, theirs in zip(found, wanted, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=atol)


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 10**6),
    trees=st.integers(1, 20),
    depth=st.integers(0, 6),
    share=st.sampled_from([0.5, 0.8, 1.0]),
    mixed=st.booleans(),
    missing=st.booleans(),
    wide=st.booleans(),
    targets=st.sampled_from([1, 2, 3]),
    aggregate=st.sampled_from(AGGREGATES),
)
def test_regressor(
    seed: int,
    trees: int,
    depth: int,
    share: float,
    mixed: bool,
    missing: bool,
    wide: bool,
    targets: int,
    aggregate: str,
) -> None:
    made = RandomTrees(
        seed,
        trees,
        depth,
        share,
        modes=MODES if mixed else ("LEQ",),
        missing=missing,
        targets=targets,
        weights_a_leaf=1 + seed % targets,
        dtype=np.float64 if wide else np.float32,
    )
    x = made.rows(9)
    more: dict[str, Any] = {"n_targets": targets, "aggregate_function": aggregate}
    if not wide and made.weights_a_leaf == targets:  # onnxruntime adds none to a target that no leaf names.
        more["base_values"] = [0.25 * (1 + target) for target in range(targets)]
    assert_agrees(tree_model("TreeEnsembleRegressor", made.older("target", **more), x), x)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 2, 3])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_transforms_of_a_regressor(transform: str, targets: int) -> None:
    made = RandomTrees(targets, targets=targets, weights_a_leaf=targets, positive=transform == "PROBIT")
    x = made.rows(9)
    attributes = made.older("target", n_targets=targets, post_transform=transform)
    attributes["target_weights"] = [weight / 12 for weight in attributes["target_weights"]]
    assert_agrees(tree_model("TreeEnsembleRegressor", attributes, x), x)


def classifier(
    classes: int, named: str, positive: bool, base: int, transform: str
) -> tuple[onnx.ModelProto, np.ndarray]:
    """A classifier whose leaves name the first class, the last, any, or all of them."""
    first = classes - 1 if named == "last" else 0
    targets = 1 if named == "first" else classes
    made = RandomTrees(
        7,
        trees=6,
        targets=targets,
        first_target=first,
        weights_a_leaf=classes if named == "all" else 1,
        positive=positive,
    )
    attributes = made.older("class", post_transform=transform, classlabels_int64s=list(range(classes)))
    attributes["class_weights"] = [weight / 8 for weight in attributes["class_weights"]]
    if base:
        attributes["base_values"] = [0.125, 0.25, -0.125][:base]
    x = made.rows(20)
    return tree_model("TreeEnsembleClassifier", attributes, x), x


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(
    ("classes", "named", "base"),
    [
        *((2, named, base) for named in ("first", "last", "all") for base in (0, 1, 2)),
        *((3, named, base) for named in ("first", "last", "any", "all") for base in (0, 3)),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_classifier(classes: int, named: str, base: int, positive: bool, transform: str) -> None:
    model, x = classifier(classes, named, positive, base, transform)
    expected = list(by_onnxruntime(model, {"x": x}).values())
    if transform == "PROBIT" and (classes, named) == (2, "first") and base < 2:
        # The second score of one sum is what happened to be in memory.
        expected[1][:, 1] = InferenceSession(model, backend="interpreter").run(None, {"x": x})[1][:, 1]
    # Beside a half, PROBIT subtracts numbers that are almost the same.
    assert_agrees(model, x, expected, 5e-4 if transform == "PROBIT" else 1e-5)


def test_labels() -> None:
    model, x = classifier(3, "all", False, 0, "NONE")
    (node,) = model.graph.node
    numbers = by_onnxruntime(model, {"x": x})["label"]
    for attribute in node.attribute:
        if attribute.name == "classlabels_int64s":
            attribute.ints[:] = [7, -2, 40]
    label, _ = InferenceSession(model, cache=False).run(None, {"x": x})
    np.testing.assert_array_equal(label, np.array([7, -2, 40])[numbers])


def test_labels_that_are_strings() -> None:
    made = RandomTrees(1, targets=2, weights_a_leaf=2)
    x = made.rows(20)
    model = tree_model("TreeEnsembleClassifier", made.older("class", classlabels_strings=["no", "yes"]), x)
    expected = by_onnxruntime(model, {"x": x})["label"]
    found, _ = InferenceSession(model, cache=False).run(None, {"x": x})
    assert found.tolist() == expected.tolist()
    assert set(found.tolist()) == {"no", "yes"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", [False, True])
def test_each_mode(mode: str, missing: bool) -> None:
    made = RandomTrees(3, trees=8, modes=(mode,), missing=missing)
    x = made.rows(40)
    assert_agrees(tree_model("TreeEnsembleRegressor", made.older("target", n_targets=1), x), x)


@pytest.mark.parametrize("aggregate", range(4))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_newer_form(aggregate: int, dtype: Any) -> None:
    made = RandomTrees(11 + aggregate, trees=9, share=0.7, missing=True, targets=2, dtype=dtype)
    x = made.rows(30)
    attributes = made.newer(aggregate_function=aggregate)
    model = tree_model("TreeEnsemble", attributes, x)
    assert_agrees(model, x)
    (sums,) = by_onnxruntime(model, {"x": x}).values()
    # The standard and onnxruntime differ in the numbers of SOFTMAX and LOGISTIC.
    powers = np.exp(sums)
    transformed = {1: powers / powers.sum(axis=1, keepdims=True), 2: powers / (1 + powers)}
    for number, expected in transformed.items():
        model = tree_model("TreeEnsemble", attributes | {"post_transform": number}, x)
        assert_agrees(model, x, [expected])


def test_halves() -> None:
    made = RandomTrees(5, trees=9, share=1.0, modes=("LEQ",))
    made.dtype = np.float16
    x = np.nan_to_num(made.rows(20))
    model = tree_model("TreeEnsemble", made.newer(), x)
    assert_agrees(model, x, [by_reference(model, {"x": x})["y"].astype(np.float16)], 1e-2)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64])
def test_other_types_of_features(dtype: Any) -> None:
    made = RandomTrees(5, trees=9)
    x = made.rng.integers(-3, 4, (20, made.features)).astype(dtype)
    attributes = made.older("target", n_targets=1)
    same = x.astype(np.float32)
    (wanted,) = by_onnxruntime(tree_model("TreeEnsembleRegressor", attributes, same), {"x": same}).values()
    assert_agrees(tree_model("TreeEnsembleRegressor", attributes, x), x, [wanted])


def sets_model(tracks_true: bool) -> tuple[onnx.ModelProto, np.ndarray]:
    """A tree that tests for membership in two sets, one of which has no member, and by a threshold."""
    members = np.array([1, 2.5, 7, np.nan, np.nan], np.float32)
    attributes = {
        "nodes_modes": numpy_helper.from_array(np.array([6, 0, 6], np.uint8), "m"),
        "nodes_splits": numpy_helper.from_array(np.array([0, 1.5, 0], np.float32), "s"),
        "nodes_featureids": [0, 1, 1],
        "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 3],
        "nodes_falseleafs": [0, 1, 1],
        "nodes_missing_value_tracks_true": [int(tracks_true)] * 3,
        "membership_values": numpy_helper.from_array(members, "v"),
        "leaf_targetids": [0] * 4,
        "leaf_weights": numpy_helper.from_array(np.array([1, 2, 4, 8], np.float32), "w"),
        "tree_roots": [0],
        "n_targets": 1,
    }
    x = np.array([[1, 0], [2.5, 3], [7, np.nan], [3, 1], [np.nan, 2], [np.nan, np.nan]], np.float32)
    return tree_model("TreeEnsemble", attributes, x), x


@pytest.mark.parametrize("tracks_true", [False, True])
def test_sets(tracks_true: bool) -> None:
    model, x = sets_model(tracks_true)
    assert_agrees(model, x, [by_reference(model, {"x": x})["y"]])


def test_rows_known_at_run_time_only() -> None:
    made = RandomTrees(3, trees=20, depth=5)
    x = made.rows(70)
    model = tree_model("TreeEnsembleRegressor", made.older("target", n_targets=1), x, rows="rows")
    session = InferenceSession(model, dimensions={"rows": (1, 70)}, cache=False)
    for count in (1, 2, 31, 70):
        part = x[:count]
        (wanted,) = by_onnxruntime(model, {"x": part}).values()
        np.testing.assert_allclose(session.run(None, {"x": part})[0], wanted, rtol=1e-5, atol=1e-5)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a child that is not there": ({"nodes_truenodeids": [9, 0, 0]}, "a node has a missing child"),
    "a circle": ({"nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], "nodes_falsenodeids": [2, 2, 0]}, "a cycle"),
    "a node that leads to itself": ({"nodes_truenodeids": [0, 0, 0]}, "a cycle"),
    "a circle that takes the root away": (
        {
            "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"],
            "nodes_truenodeids": [1, 0, 0],
            "nodes_falsenodeids": [1, 0, 0],
        },
        "a cycle",
    ),
    "a circle that nothing leads to": (
        {
            "nodes_modes": ["LEAF", "BRANCH_LEQ", "BRANCH_LEQ"],
            "nodes_truenodeids": [0, 2, 1],
            "nodes_falsenodeids": [0, 2, 1],
        },
        "a cycle",
    ),
    "lists of other lengths": ({"nodes_featureids": [0]}, "differ in length"),
    "a number that comes twice": ({"nodes_nodeids": [0, 1, 1]}, "distinct numbers"),
    "a feature that is not there": ({"nodes_featureids": [5, 0, 0]}, "feature 5 of 2"),
    "a target that is not there": ({"target_ids": [0, 3]}, "target 3 of 1"),
    "an aggregate": ({"aggregate_function": "MEDIAN"}, "MEDIAN"),
    "a transform": ({"post_transform": "TANH", "n_targets": 2}, "TANH"),
    "base values": ({"base_values": [1.0, 2.0, 3.0]}, "3 base values for 1 targets"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    attributes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    }
    change, message = WRONG[name]
    model = tree_model("TreeEnsembleRegressor", attributes | change, np.zeros((1, 2), np.float32))
    with pytest.raises(ModelError, match=message) as caught:
        import_model(model)
    assert "TreeEnsembleRegressor" in str(caught.value)
    assert isinstance(caught.value, GlowError)


def test_model_without_trees_is_refused() -> None:
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml")
    x = np.zeros((1, 2), np.float32)
    model = tree_model("TreeEnsembleRegressor", {item.name: item for item in node.attribute}, x)
    with pytest.raises(ModelError, match="has no trees"):
        import_model(model)

"""`fold-into-trees` keeps what forests of any form compute, also on numbers that are none, and leaves others alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.trees import TreeEnsembleOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import ExecutionError
from glow_mlir.frontends.onnx.importer import import_model

COLUMNS = 5


def tree(rng: np.random.Generator, name: str, features: int, mode: str) -> NodeProto:
    """A random tree on so many features, whose leaves have the numbers of their nodes."""
    nodes = [-1]
    children = dict[int, tuple[int, int]]()
    while len(nodes) < 30:
        parent = int(rng.choice([number for number in range(len(nodes)) if number not in children]))
        children[parent] = (len(nodes), len(nodes) + 1)
        nodes += [parent, parent]
    leaves = [number for number in range(len(nodes)) if number not in children]
    return helper.make_node(
        "TreeEnsembleRegressor",
        [f"{name}_x"],
        [f"{name}_leaf"],
        name=f"{name}_trees",
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * len(nodes),
        nodes_nodeids=list(range(len(nodes))),
        nodes_featureids=[int(rng.integers(features)) for _ in nodes],
        nodes_values=[float(np.float32(value)) for value in rng.standard_normal(len(nodes))],
        nodes_modes=[mode if number in children else "LEAF" for number in range(len(nodes))],
        nodes_truenodeids=[children.get(number, (0, 0))[0] for number in range(len(nodes))],
        nodes_falsenodeids=[children.get(number, (0, 0))[1] for number in range(len(nodes))],
        nodes_missing_value_tracks_true=[int(rng.integers(2)) for _ in nodes],
        target_treeids=[0] * len(leaves),
        target_nodeids=leaves,
        target_ids=[0] * len(leaves),
        target_weights=[float(number) for number in leaves],
    )


def forest(seed: int, trees: int = 4) -> bytes:
    """A sum of what is computed of the leaf of each tree, as skl2onnx writes isolation forests."""
    rng = np.random.default_rng(seed)
    nodes, weights, terms = list[NodeProto](), list[TensorProto](), list[str]()
    constants = {"one": np.float32(1), "shape": np.array([-1, 1]), "half": np.array([0.5], np.float32)}
    for number in range(trees):
        name = f"t{number}"
        columns = rng.permutation(COLUMNS)[: rng.integers(2, COLUMNS + 1)]
        constants[f"{name}_columns"] = columns - COLUMNS * rng.integers(0, 2, len(columns))
        values = [float(np.float32(value)) for value in rng.standard_normal(31)]
        nodes += [
            helper.make_node("Gather", ["x", f"{name}_columns"], [f"{name}_x"], axis=1),
            tree(rng, name, len(columns), str(rng.choice(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT"]))),
            helper.make_node("Cast", [f"{name}_leaf"], [f"{name}_id"], to=TensorProto.INT64),
            helper.make_node(
                "LabelEncoder",
                [f"{name}_id"],
                [f"{name}_value"],
                domain="ai.onnx.ml",
                keys_int64s=list(range(31)),
                values_floats=values,
            ),
            helper.make_node("Reshape", [f"{name}_value", "shape"], [f"{name}_row"]),
            helper.make_node("Greater", [f"{name}_row", "half"], [f"{name}_more"]),
            helper.make_node("Cast", [f"{name}_more"], [f"{name}_one"], to=TensorProto.FLOAT),
            helper.make_node("Max", [f"{name}_row", "one"], [f"{name}_max"]),
            helper.make_node("Log", [f"{name}_max"], [f"{name}_log"]),
            helper.make_node("Mul", [f"{name}_log", f"{name}_one"], [f"{name}_product"]),
            helper.make_node("Sub", [f"{name}_product", f"{name}_row"], [f"{name}_depth"]),
        ]
        terms.append(f"{name}_depth")
    nodes.append(helper.make_node("Sum", terms, ["sum"]))
    nodes.append(helper.make_node("Exp", ["sum"], ["y"]))
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", COLUMNS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])
    graph = helper.make_graph(nodes, "forest", [x], [y], weights)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def rows(seed: int) -> np.ndarray:
    """Rows of features, some of which are no numbers."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, COLUMNS)).astype(np.float32)
    x[rng.random(x.shape) < 0.05] = np.nan
    x[rng.random(x.shape) < 0.05] = np.inf
    return x


@pytest.mark.parametrize("seed", range(3))
def test_forests_keep_what_they_compute(seed: int) -> None:
    x = rows(seed)
    plain = InferenceSession(forest(seed), disable=["fold-into-trees"], cache=False, backend="interpreter")
    expected = plain.run(None, {"x": x})[0]
    for backend in ("interpreter", "cpu"):
        found = InferenceSession(forest(seed), cache=False, backend=backend, dimensions={"N": len(x)})
        np.testing.assert_allclose(found.run(None, {"x": x})[0], expected, rtol=2e-6)


def test_a_forest_is_one_ensemble() -> None:
    module = import_model(forest(0, 6), {"N": 3})
    Compilation(module, backend="cpu").run("optimized")
    (ensemble,) = [op for op in module.walk() if isinstance(op, TreeEnsembleOp)]
    assert shape_of(ensemble.roots) == (6,)
    assert sum(op.name.startswith("glow_high.") for op in module.walk()) < 20


@pytest.mark.extra
def test_an_isolation_forest_answers_soon() -> None:
    """The default of scikit-learn, 100 trees and 2,710 operators: fewer pieces of code than operators."""
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    from sklearn.ensemble import IsolationForest

    x = rows(1)
    x[~np.isfinite(x)] = 0
    forest_: Any = IsolationForest(random_state=0).fit(x)
    model: ModelProto = to_onnx(forest_, x[:1], target_opset={"": 20, "ai.onnx.ml": 3})
    session = InferenceSession(model.SerializeToString(), cache=False)
    labels, scores = session.run(None, {"X": x})
    np.testing.assert_array_equal(labels.ravel(), forest_.predict(x))
    np.testing.assert_allclose(scores.ravel(), forest_.decision_function(x), atol=1e-6)
    module = import_model(model.SerializeToString(), {"X.0": 1})
    Compilation(module, backend="cpu").run("optimized")
    assert sum(op.name.startswith("glow_high.") for op in module.walk()) < 40


def summed(columns: list[int], order: str) -> bytes:
    """Three trees of one node each on selected columns, with leaves that cancel, added up in an order."""
    nodes = [helper.make_node("Gather", ["x", "columns"], ["c"], axis=1)]
    for name, (low, high) in {"a": (1.0, 4.0), "b": (1e8, -1e8), "d": (-1e8, 1e8)}.items():
        nodes.append(
            helper.make_node(
                "TreeEnsembleRegressor",
                ["c"],
                [name],
                domain="ai.onnx.ml",
                n_targets=1,
                nodes_treeids=[0, 0, 0],
                nodes_nodeids=[0, 1, 2],
                nodes_featureids=[0, 0, 0],
                nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
                nodes_values=[0.0, 0.0, 0.0],
                nodes_truenodeids=[1, 0, 0],
                nodes_falsenodeids=[2, 0, 0],
                target_treeids=[0, 0],
                target_nodeids=[1, 2],
                target_ids=[0, 0],
                target_weights=[low, high],
            )
        )
    pairs = {"left": (["a", "b"], ["s", "d"]), "right": (["b", "d"], ["a", "s"])}[order]
    nodes += [helper.make_node("Add", given, [out]) for given, out in zip(pairs, ("s", "y"), strict=True)]
    weights = [numpy_helper.from_array(np.array(columns), "columns")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph(nodes, "sums", [x], [y], weights)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


X = np.array([[1, -1], [-1, 1], [1, 1]], np.float32)


@pytest.mark.parametrize("column", [2, 5, -3])
def test_columns_that_there_are_not_fail(column: int) -> None:
    session = InferenceSession(summed([column], "left"), cache=False)
    with pytest.raises(ExecutionError, match="an index is out of range"):
        session.run(None, {"x": X})


@pytest.mark.parametrize("accuracy", ["default", "strict"])
def test_sums_in_another_order_stay_as_they_are(accuracy: str) -> None:
    session = InferenceSession(summed([0], "right"), cache=False, accuracy=accuracy)
    assert session.run(None, {"x": X})[0].ravel().tolist() == [4.0, 1.0, 4.0]


def test_strict_sums_stay_apart() -> None:
    """Each step rounds where the model says it: one is lost beside 10^8."""
    session = InferenceSession(summed([0], "left"), cache=False, accuracy="strict")
    assert session.run(None, {"x": X})[0].ravel().tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("shape", "is_first"), [([1], True), ([1], False), ([1, 1, 1], True), ([1, 1, 1], False)])
def test_one_row_of_other_ranks(shape: list[int], is_first: bool) -> None:
    """Leaves of a value meet those of its other forms, and no others."""
    onnx_nodes = [
        helper.make_node("Reshape", ["a", "shape"], ["r"]),
        helper.make_node("Add", ["a", "r"] if is_first else ["r", "a"], ["y"]),
    ]
    model = ModelProto.FromString(summed([0], "left"))
    kept = [node for node in model.graph.node if node.output[0] in ("c", "a")]
    del model.graph.node[:]
    model.graph.node.extend([*kept, *onnx_nodes])
    model.graph.initializer.append(numpy_helper.from_array(np.array(shape), "shape"))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    model.graph.output[0].type.tensor_type.ClearField("shape")
    session = InferenceSession(model.SerializeToString(), cache=False)
    for value, leaf in ((-1.0, 1.0), (1.0, 4.0)):
        assert session.run(None, {"x": np.full((1, 2), value, np.float32)})[0].ravel().tolist() == [2 * leaf]

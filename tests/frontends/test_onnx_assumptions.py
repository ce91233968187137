"""Mistakes that other engines forgive: models run as there, with one line of warning, and the strict refuse them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import integers, model_of, node, refusal, value, weight
from python_value_cases import by_onnxruntime

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowWarning, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.frontends.onnx.models.assumptions import assume

X = np.array([-1, 2], np.float32)
FLAG = numpy_helper.from_array(np.array(True), "flag")


def sparse(name: str, number: float) -> onnx.SparseTensorProto:
    """[0, number]."""
    return helper.make_sparse_tensor(weight(name, number), integers("", 1), [2])


def with_sparse(model: onnx.ModelProto, *tensors: onnx.SparseTensorProto) -> onnx.ModelProto:
    model.graph.sparse_initializer.extend(tensors)
    return model


def constant(name: str, item: onnx.TensorProto | onnx.SparseTensorProto) -> onnx.NodeProto:
    found = helper.make_node("Constant", [], [name])
    found.attribute.append(helper.make_attribute("value", item))
    return found


def with_opsets(model: onnx.ModelProto, **versions: int) -> onnx.ModelProto:
    del model.opset_import[:]
    for domain, version in versions.items():
        model.opset_import.append(helper.make_opsetid("" if domain == "onnx" else domain.replace("_", "."), version))
    return model


def branching(then: list[onnx.NodeProto], late: list[onnx.NodeProto] | None = None) -> onnx.ModelProto:
    """An If whose branches give 'o', and nodes behind it."""
    branches = {f"{key}_branch": helper.make_graph(then, key, [], [value("o")]) for key in ("then", "else")}
    return model_of([node("If", "flag", "y", "if", **branches), *(late or [])], initializers=[FLAG])


def function(nodes: list[onnx.NodeProto], imports: bool = True, opset: int = 18) -> onnx.ModelProto:
    """A call of a function of the model's own."""
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid("com.microsoft", 1)] if imports else [])]
    model = model_of([node("F", domain="own")])
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.functions.append(helper.make_function("own", "F", ["x"], ["y"], nodes, opsets))
    return model


def nameless() -> onnx.ModelProto:
    model = model_of([node("Relu")])
    model.graph.ClearField("name")
    return model


SWAPPED = [node("Neg", "a", "y", "late"), node("Relu", "x", "a", "early")]
INNER = [node("Neg", "a", "o", "late"), node("Relu", "x", "a", "early")]
NORM = node("LayerNormalization", "x w w", name="norm")

FORGIVEN: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "nodes that are not sorted": (
        lambda: model_of(SWAPPED),
        "the nodes of the graph are not sorted, 'early' computes an operand of 'late' and comes later",
    ),
    "a branch that uses what comes later": (
        lambda: branching([node("Neg", "q", "o")], [node("Abs", "x", "q", "abs")]),
        "the nodes of the graph are not sorted, 'abs' computes an operand of 'if' and comes later",
    ),
    "a domain that is not imported": (
        lambda: model_of([node("FastGelu", domain="com.microsoft", name="gelu")]),
        "node 'gelu': FastGelu: the model imports no version of opset 'com.microsoft'; 1 is assumed",
    ),
    "ONNX's own domain that is not imported": (
        lambda: with_opsets(model_of([node("Relu", "x", "y", "act")]), com_microsoft=1),
        "node 'act': Relu: the model imports no version of opset 'ai.onnx'; ",
    ),
    "a new operator of ai.onnx.ml": (
        lambda: model_of(
            [node("LabelEncoder", domain="ai.onnx.ml", keys_floats=[2.0], values_floats=[5.0], name="code")]
        ),
        "node 'code': LabelEncoder: the model imports no version of opset 'ai.onnx.ml'; 5 is assumed",
    ),
    "layer normalization before there was one": (
        lambda: model_of([NORM], initializers=[weight("w", 1, 2)], opset=9),
        "node 'norm': LayerNormalization: it is of opset 17, and the model imports opset 9",
    ),
    "a graph without a name": (nameless, "a graph has no name; it is called 'graph'"),
    "two initializers of one name": (
        lambda: model_of([node("Add", "x w")], initializers=[weight("w", 1, 1), weight("w", 2, 2)]),
        "constant 'w' is defined twice; the last value is used",
    ),
    "two constants of one name": (
        lambda: model_of([constant("w", weight("", 1, 1)), constant("w", weight("", 2, 2)), node("Add", "x w")]),
        "constant 'w' is defined twice",
    ),
    "a constant of another value for each of its uses": (
        lambda: model_of(
            [
                constant("w", weight("", 1, np.nan)),
                node("Add", "x w", "a"),
                constant("w", weight("", 2, 2)),
                node("Mul", "a w"),
                constant("w", weight("", 3, 3)),
            ]
        ),
        "constant 'w' is defined 3 times; the last value is used",
    ),
    "a constant that is an initializer as well": (
        lambda: model_of([constant("w", weight("", 2, 2)), node("Add", "x w")], initializers=[weight("w", 1, 1)]),
        "constant 'w' is defined twice",
    ),
    "an initializer that is dense and sparse": (
        lambda: with_sparse(model_of([node("Add", "x w")], initializers=[weight("w", 1, 1)]), sparse("w", 5)),
        "constant 'w' is defined twice",
    ),
    "a sparse value": (
        lambda: model_of([constant("w", sparse("", 5)), node("Add", "x w")]),
        "Constant: its value is sparse; it is taken as sparse_value",
    ),
    "an output that is listed twice": (
        lambda: model_of([node("Relu")], outputs=["y", "y", "y"]),
        "output 'y' is listed 3 times; the others are called 'y.2', 'y.3'",
    ),
    "an input that is an output twice": (
        lambda: model_of([node("Relu")], outputs=["x", "y", "x"]),
        "output 'x' is listed twice; the second one is called 'x.2'",
    ),
}


def told(model: onnx.ModelProto, expected: str, **options: Any) -> InferenceSession:
    """The session of a model, which warns once."""
    with pytest.warns(GlowWarning) as found:
        session = InferenceSession(model, cache=False, **options)
    (line,) = [str(item.message) for item in found]
    assert expected in line
    return session


def check_refusal(model: onnx.ModelProto, expected: str) -> None:
    """The strict are told of the fault, and of what is assumed otherwise in the hint alone."""
    fault, _, assumed = expected.partition("; ")
    reason, _, hint = refusal(model, ModelError, strict=True).partition(" (hint: ")
    assert fault in reason
    assert "with strict=False " in hint
    assert not assumed or (assumed not in reason and assumed.partition(" (")[0] in hint)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", FORGIVEN)
def test_what_onnxruntime_forgives_runs_as_there(case: str) -> None:
    make, expected = FORGIVEN[case]
    model = make()
    before = model.SerializeToString(deterministic=True)
    session = told(model, expected)
    assert model.SerializeToString(deterministic=True) == before
    model.ir_version = 9
    for ours, theirs in zip(session.run(None, {"x": X}), by_onnxruntime(model, {"x": X}), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    check_refusal(model, expected)


OWN: dict[str, tuple[Callable[[], onnx.ModelProto], str, Any]] = {
    "a branch that is not sorted": (
        lambda: branching(INNER),
        "the nodes of graph 'then' are not sorted, 'early' computes an operand of 'late' and comes later",
        [0, -2],
    ),
    "a function that is not sorted": (lambda: function(SWAPPED), "the nodes of function 'F' are not sorted", [0, -2]),
    "a function that does not import what it uses": (
        lambda: function([node("QuickGelu", domain="com.microsoft", alpha=0.0)], imports=False),
        "QuickGelu: function 'F' imports no version of opset 'com.microsoft'; 1 is assumed",
        [-0.5, 1],
    ),
    "a function with an operator of no opset": (
        lambda: function([node("ScaledTanh", alpha=1.0, beta=0.0, name="tanh")]),
        "node 'tanh': ScaledTanh: it is in no opset",
        [0, 0],
    ),
    "a function with an operator before there was one": (
        lambda: function([node("ThresholdedRelu", alpha=1.0)], opset=9),
        "node 'y': ThresholdedRelu: it is of opset 10, and function 'F' imports opset 9",
        [0, 2],
    ),
    "an old operator of ai.onnx.ml": (
        lambda: model_of([node("Normalizer", domain="ai.onnx.ml", norm="MAX")], [value("x", shape=(1, 2))]),
        "Normalizer: the model imports no version of opset 'ai.onnx.ml'",
        [[-0.5, 1]],
    ),
}


@pytest.mark.parametrize("case", OWN)
def test_what_onnxruntime_does_not_forgive_in_all_places(case: str) -> None:
    make, expected, wanted = OWN[case]
    model = make()
    session = told(model, expected)
    np.testing.assert_allclose(session.run(None, {"x": np.reshape(X, np.shape(wanted))})[0], wanted)
    check_refusal(model, expected)


def test_version_that_is_assumed_has_the_operators() -> None:
    """Trees as attributes are withdrawn from ai.onnx.ml 5, and label encoders of classes from 2."""
    tree: dict[str, Any] = {
        "nodes_treeids": [0],
        "nodes_nodeids": [0],
        "nodes_featureids": [0],
        "nodes_values": [0.0],
        "nodes_modes": ["LEAF"],
        "nodes_truenodeids": [0],
        "nodes_falsenodeids": [0],
        "target_treeids": [0],
        "target_nodeids": [0],
        "target_ids": [0],
        "target_weights": [7.0],
    }
    for kind, version, attributes in (
        ("TreeEnsembleRegressor", 4, {**tree, "n_targets": 1}),
        ("LabelEncoder", 1, {"classes_strings": ["a", "b"]}),
    ):
        model, doubts = assume(model_of([node(kind, domain="ai.onnx.ml", **attributes)]), is_own=True)
        assert model.opset_import[-1] == helper.make_opsetid("ai.onnx.ml", version)
        assert f"{version} is assumed" in str(doubts[0].warning())


def test_an_order_that_was_right_stays() -> None:
    chain = [node("Relu", f"v{n}", f"v{n + 1}") for n in (3, 0, 4, 1, 2)]
    model, _ = assume(model_of([*chain, node("Neg", "x", "v0")], outputs=["v5"]), is_own=True)
    assert [item.output[0] for item in model.graph.node] == ["v0", "v1", "v2", "v3", "v4", "v5"]


def test_nodes_that_depend_on_themselves_are_no_order() -> None:
    model = model_of([node("Neg", "b", "a", "one"), node("Neg", "a", "b", "two"), node("Relu", "a", "y")])
    assert "the graph has a cycle through 'one', 'two'" in refusal(model, ModelError)
    model = branching([node("Neg", "y", "o")])
    assert "the graph has a cycle through 'if'" in refusal(model, ModelError)


def test_names_that_two_nodes_give_are_refused() -> None:
    for nodes in ([node("Relu"), node("Neg")], [constant("y", weight("", 1, 1)), node("Relu")]):
        assert "output 'y' has the name of another value" in refusal(model_of(nodes), ModelError)


def test_operators_that_nobody_has_are_not_assumed() -> None:
    assert "own.domain.F ('f')" in refusal(model_of([node("F", domain="own.domain", name="f")]), UnsupportedError)
    assert "Gelu: it is of opset 20" in refusal(model_of([node("Gelu", name="g")], opset=17), ModelError)


def ones(session: InferenceSession, *sizes: int) -> np.ndarray:
    return np.concatenate([session.run(None, {"x": np.ones(size, np.float32)})[0] for size in sizes])


def test_files_and_calls_of_any_size_are_mended_too(tmp_path: Path) -> None:
    onnx.save(model_of(SWAPPED, [value("x", shape=("N",))]), tmp_path / "model.onnx")
    with pytest.warns(GlowWarning, match=f"{tmp_path / 'model.onnx'}: the nodes of the graph are not sorted"):
        found = ones(InferenceSession(tmp_path / "model.onnx", cache=False), 2, 3)
    np.testing.assert_array_equal(found, -np.ones(5))


def test_models_with_strings_are_mended_too() -> None:
    nodes = [node("Identity", "t", "y", "late"), node("StringConcat", "x x", "t", "early")]
    model = model_of(nodes, [value("x", TensorProto.STRING)], opset=20)
    session = told(model, "the nodes of the graph are not sorted")
    assert session.run(None, {"x": ["a", "b"]})[0].tolist() == ["aa", "bb"]
    with pytest.raises(ModelError, match="are not sorted"):
        InferenceSession(model, cache=False, strict=True)


def test_imported_modules_know_nothing_of_it() -> None:
    with pytest.warns(GlowWarning):
        mended = import_model(model_of(SWAPPED))
    assert str(mended) == str(import_model(model_of(SWAPPED[::-1])))


def test_a_form_that_many_files_have_is_refused_by_the_strict_alone() -> None:
    """Exporters of onnxruntime write it, in ONNX's own domain."""
    model = model_of([node("SimplifiedLayerNormalization", "x w", name="norm")], initializers=[weight("w", 1, 2)])
    InferenceSession(model, cache=False)
    line = refusal(model, ModelError, strict=True)
    assert line.startswith(
        "node 'norm': SimplifiedLayerNormalization: it is in no opset of ONNX (hint: with strict=False"
    )

"""The operators of ai.onnx.ml but for trees compute what onnxruntime does, rules included that no text has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from python_value_cases import ML, assert_node, by_onnxruntime, node_model, words

from glow_mlir import InferenceSession
from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.errors import ExecutionError, GlowError, ModelError
from glow_mlir.frontends.onnx import signature
from glow_mlir.frontends.onnx.importer import import_model, open_model
from glow_mlir.frontends.onnx.models import functions

NAN = float("nan")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
ROWS = np.array([[1, 2], [-3, 0.5], [0, 0]], np.float32)


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


FEATURES: dict[str, tuple[str, list[np.ndarray], dict[str, Any]]] = {
    "columns of a vector": ("ArrayFeatureExtractor", [floats(5), np.array([1, 3])], {}),
    "columns": ("ArrayFeatureExtractor", [floats(2, 5), np.array([[1, 3]])], {}),
    "columns of three axes": ("ArrayFeatureExtractor", [floats(2, 2, 3), np.array([0])], {}),
    "columns of strings": ("ArrayFeatureExtractor", [words("a", "b"), np.array([1])], {}),
    "side by side": ("FeatureVectorizer", [floats(2, 2), floats(2, 2)], {"inputdimensions": [2, 2]}),
    "cut and padded": ("FeatureVectorizer", [floats(2, 3), floats(2, 1)], {"inputdimensions": [2, 2]}),
    "scaled by column": ("Scaler", [floats(2, 3)], {"offset": [1.0, 2.0, 3.0], "scale": [2.0, 2.0, 2.0]}),
    "scaled row": ("Scaler", [floats(3)], {"offset": [1.0, 2.0, 3.0], "scale": [2.0, 2.0, 2.0]}),
    "scaled integers": ("Scaler", [np.arange(4).reshape(2, 2)], {"offset": [1.0], "scale": [2.0]}),
    "scaled doubles": ("Scaler", [floats(2, 3).astype(np.float64)], {"offset": [1.0], "scale": [2.0]}),
    "imputed": (
        "Imputer",
        [np.array([[1, NAN, 3], [NAN, 2, 0]], np.float32)],
        {"imputed_value_floats": [9.0], "replaced_value_float": NAN},
    ),
    "imputed by column": (
        "Imputer",
        [np.array([[1, NAN, 0], [0, 2, 0]], np.float32)],
        {"imputed_value_floats": [7.0, 8.0, 9.0], "replaced_value_float": 0.0},
    ),
    "imputed integers": (
        "Imputer",
        [np.array([[1, 5], [5, 0]])],
        {"imputed_value_int64s": [7, 8], "replaced_value_int64": 5},
    ),
    "above a threshold": ("Binarizer", [np.array([[-4, 2, 1]], np.float32)], {"threshold": 1.0}),
    **{
        f"{norm} of {name}": ("Normalizer", [rows], {"norm": norm})
        for norm in ("MAX", "L1", "L2")
        for name, rows in {
            "floats": np.array([[-4, 2], [0, 0], [-1, -3]], np.float32),
            "a row": np.array([-4, 2], np.float32),
            "integers": np.arange(8).reshape(4, 2),
        }.items()
    },
}


@pytest.mark.parametrize("case", FEATURES)
def test_features(case: str) -> None:
    kind, arrays, attributes = FEATURES[case]
    assert_node(kind, arrays, domain=ML, **attributes)


RANDOM = np.random.default_rng(0)
MANY = RANDOM.standard_normal(300).astype(np.float32)
WIDE = RANDOM.integers(-(10**15), 10**15, size=200)

ENCODERS: dict[str, tuple[str, list[np.ndarray], int, dict[str, Any]]] = {
    "one-hot": ("OneHotEncoder", [np.array([[1, 2], [3, 9]])], 3, {"cats_int64s": [1, 2, 3]}),
    "one-hot of known ones": ("OneHotEncoder", [np.array([3, 1])], 3, {"cats_int64s": [1, 2, 3], "zeros": 0}),
    "one-hot of floats": ("OneHotEncoder", [np.array([1.7, 2], np.float32)], 3, {"cats_int64s": [1, 2, 3]}),
    "one-hot of strings": ("OneHotEncoder", [words("a", "z")], 3, {"cats_strings": ["a", "b"]}),
    "one-hot of one twice": ("OneHotEncoder", [np.array([1, 1])], 3, {"cats_int64s": [1, 1]}),
    "one-hot of far ones": ("OneHotEncoder", [np.array([1, 10**12, -5])], 3, {"cats_int64s": [1, 10**12, 7]}),
    "classes to places": ("LabelEncoder", [words("a", "z")], 1, {"classes_strings": ["b", "a"], "default_int64": -7}),
    "places to classes": ("LabelEncoder", [np.array([0, 1, 5])], 1, {"classes_strings": ["b", "a"]}),
    "strings to integers": (
        "LabelEncoder",
        [words("a", "z")],
        3,
        {"keys_strings": ["a", "b"], "values_int64s": [5, 6]},
    ),
    "integers to strings": (
        "LabelEncoder",
        [np.array([0, 1, 5])],
        3,
        {"keys_int64s": [0, 1], "values_strings": ["a", "b"], "default_string": "?"},
    ),
    "strings to strings": (
        "LabelEncoder",
        [words("a", "", "unseen")],
        3,
        {"keys_strings": ["a", ""], "values_strings": ["A", "none"]},
    ),
    "a NaN that is no key": (
        "LabelEncoder",
        [np.array([0, 1, 5, NAN], np.float32)],
        3,
        {"keys_floats": [0.0, NAN], "values_floats": [3.0, 4.0]},
    ),
    "a NaN that is a key": (
        "LabelEncoder",
        [np.array([0, 1, 5, NAN])],
        4,
        {
            "keys_tensor": helper.make_tensor("k", TensorProto.DOUBLE, [2], [0.0, NAN]),
            "values_tensor": helper.make_tensor("v", TensorProto.INT64, [2], [3, 4]),
            "default_tensor": helper.make_tensor("d", TensorProto.INT64, [1], [-9]),
        },
    ),
    "keys that come twice": (
        "LabelEncoder",
        [np.array([0, 0, 7])],
        3,
        {"keys_int64s": [0, 0], "values_int64s": [1, 2]},
    ),
    "a negative zero": (
        "LabelEncoder",
        [np.array([-0.0, 5], np.float32)],
        3,
        {"keys_floats": [0.0], "values_strings": ["z"]},
    ),
    "keys at the ends of integers": (
        "LabelEncoder",
        [np.array([2**63 - 1, 2**63 - 2, -(2**63), 0])],
        3,
        {"keys_int64s": [2**63 - 1, 2**63 - 4], "values_int64s": [1, 2]},
    ),
    "categories at the end of integers": ("OneHotEncoder", [np.array([-(2**63), 0])], 3, {"cats_int64s": [-(2**63)]}),
    "one-hot of NaN": ("OneHotEncoder", [np.array([NAN, 1], np.float32)], 3, {"cats_int64s": [0, 1, 2]}),
    "categories that come twice": (
        "CategoryMapper",
        [words("a", "q")],
        3,
        {"cats_strings": ["a", "a"], "cats_int64s": [1, 2]},
    ),
    "integers that come twice": (
        "CategoryMapper",
        [np.array([1, 2])],
        3,
        {"cats_strings": ["a", "b"], "cats_int64s": [1, 1]},
    ),
    "many floats": (
        "LabelEncoder",
        [RANDOM.permutation(np.concatenate([MANY, MANY + np.float32(1e-3)]))],
        3,
        {"keys_floats": MANY.tolist(), "values_int64s": list(range(300))},
    ),
    "many far integers": (
        "LabelEncoder",
        [np.concatenate([WIDE[::3], WIDE + 1]).reshape(-1, 1)],
        3,
        {"keys_int64s": WIDE.tolist(), "values_strings": [f"s{n}" for n in range(200)]},
    ),
    "categories to integers": (
        "CategoryMapper",
        [words("a", "z")],
        3,
        {"cats_int64s": [7, 8], "cats_strings": ["a", "b"], "default_int64": -3},
    ),
    "integers to categories": (
        "CategoryMapper",
        [np.array([7, 9])],
        3,
        {"cats_int64s": [7, 8], "cats_strings": ["a", "b"], "default_string": "no"},
    ),
}


@pytest.mark.parametrize("case", ENCODERS)
def test_encoders(case: str) -> None:
    kind, arrays, version, attributes = ENCODERS[case]
    assert_node(kind, arrays, domain=ML, version=version, **attributes)


@pytest.mark.parametrize(("keys", "tables"), [((3, 1, 2), 1), ((-(2**40), 0, 2**40), 2)], ids=("near", "far"))
def test_no_table_leads_to_another_one(keys: tuple[int, ...], tables: int) -> None:
    """What a category becomes stands where its position would: in the one table, or beside the sorted categories."""
    given: dict[str, Any] = {"keys_int64s": keys, "values_floats": [0.5, 1.5, 2.5]}
    module = import_model(node_model("LabelEncoder", [np.array([1, 2])], domain=ML, version=3, **given))
    assert sum(isinstance(op, ConstantOp) for op in module.walk()) == tables


def test_nodes_of_one_operator_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of thousands of nodes have few operators."""
    asked: list[str] = []

    def told(domain: str, kind: str, opsets: Mapping[str, int]) -> str:
        asked.append(kind)
        return functions.unknown_operator(domain, kind, opsets)

    monkeypatch.setattr(signature, "unknown_operator", told)
    nodes = [helper.make_node("Relu", [f"v{index}"], [f"v{index + 1}"]) for index in range(50)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in ("v0", "v50"))
    model = helper.make_model(helper.make_graph(nodes, "chain", [x], [y]))
    signature.signature_of(open_model(model), {})
    assert asked == ["Relu"]


@pytest.mark.parametrize("labels", [{"classlabels_strings": ["b", "a"]}, {"classlabels_int64s": [4, -5]}])
def test_maps_for_callers(labels: dict[str, Any]) -> None:
    rows = np.array([[0.1, 0.9], [0.5, 0.5], [1, 0]], np.float32)
    assert_node("ZipMap", [rows], domain=ML, **labels)
    session = InferenceSession(node_model("ZipMap", [rows], domain=ML, **labels), cache=False)
    (output,) = session.get_outputs()
    key = "string" if "classlabels_strings" in labels else "int64"
    assert (output.type, output.shape) == (f"seq(map({key},tensor(float)))", [])


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_models(transform: str) -> None:
    given: dict[str, Any] = {"domain": ML, "post_transform": transform}
    assert_node("LinearRegressor", [ROWS], coefficients=[1.0, 2, 3, 4], intercepts=[0.5, 0.25], targets=2, **given)
    assert_node("LinearRegressor", [ROWS], coefficients=[0.1, 0.02], intercepts=[0.5], targets=1, **given)
    two: dict[str, Any] = {"coefficients": [0.1, 0.2, 0.3, 0.4], "intercepts": [0.5, 0.25], "classlabels_ints": [4, 5]}
    assert_node("LinearClassifier", [ROWS], 2, **two, **given)
    one: dict[str, Any] = {"coefficients": [0.1, 0.2], "intercepts": [0.1], "classlabels_ints": [4, 5]}
    if transform != "PROBIT":  # onnxruntime transforms what lies behind its scores.
        assert_node("LinearClassifier", [ROWS], 2, **one, **given)
    three: dict[str, Any] = {"coefficients": [0.1, 0.2, -0.1, 0.2, 0.3, -0.4], "intercepts": [0.1, 0.2, 0.3]}
    assert_node("LinearClassifier", [ROWS], 2, **three, classlabels_strings=["a", "b", "c"], **given)


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_support_vector_machines(kernel: str, transform: str) -> None:
    given: dict[str, Any] = {
        "domain": ML,
        "kernel_type": kernel,
        "kernel_params": [0.2, 0.1, 2.0],
        "post_transform": transform,
    }
    vectors: dict[str, Any] = {"support_vectors": [1.0, 2, 3, 4, -1, 0.5], **given}
    one: dict[str, Any] = {"coefficients": [0.1, -0.2, 0.3], "rho": [0.05]}
    assert_node("SVMRegressor", [ROWS], n_supports=3, **one, **vectors)
    assert_node("SVMRegressor", [ROWS], n_supports=3, one_class=1, **one, **vectors)
    assert_node("SVMRegressor", [ROWS], coefficients=[0.1, -0.2], rho=[0.05], **given)
    two: dict[str, Any] = {"vectors_per_class": [2, 1], "classlabels_ints": [3, 9]}
    assert_node("SVMClassifier", [ROWS], 2, **one, **two, **vectors)
    assert_node("SVMClassifier", [ROWS], 2, prob_a=[-1.0], prob_b=[0.1], **one, **two, **vectors)
    numbers: dict[str, Any] = {"coefficients": [0.1, -0.2, 0.3, 0.5, -0.5, 0.6], "rho": [0.05, 0.1, -0.1]}
    three: dict[str, Any] = {"vectors_per_class": [1, 1, 1], "classlabels_strings": ["a", "b", "c"], **numbers}
    assert_node("SVMClassifier", [ROWS], 2, **three, **vectors)
    assert_node("SVMClassifier", [ROWS], 2, prob_a=[-1.0, -2, -0.5], prob_b=[0.1, 0.2, 0.3], **three, **vectors)
    alone: dict[str, Any] = {"coefficients": numbers["coefficients"], "rho": [0.05], "classlabels_ints": [3, 9, 10]}
    assert_node("SVMClassifier", [ROWS], 2, **alone, **given)
    pair: dict[str, Any] = {"coefficients": [0.1, -0.2, 0.3, 0.5], "rho": [0.05], "classlabels_ints": [3, 9]}
    assert_node("SVMClassifier", [ROWS], 2, **pair, **given)


def test_probabilities_of_many_classes() -> None:
    rng = np.random.default_rng(3)
    classes, features, pairs = 7, 4, 21
    vectors = rng.standard_normal((2 * classes, features)).astype(np.float32)
    attributes: dict[str, Any] = {
        "classlabels_ints": list(range(classes)),
        "vectors_per_class": [2] * classes,
        "support_vectors": vectors.ravel().tolist(),
        "coefficients": rng.standard_normal((classes - 1) * len(vectors)).tolist(),
        "rho": rng.standard_normal(pairs).tolist(),
        "prob_a": (-rng.uniform(0.5, 3, pairs)).tolist(),
        "prob_b": rng.standard_normal(pairs).tolist(),
        "kernel_type": "RBF",
        "kernel_params": [0.3, 0.0, 3.0],
    }
    assert_node("SVMClassifier", [rng.standard_normal((50, features)).astype(np.float32)], 2, domain=ML, **attributes)


WRONG: dict[str, tuple[str, list[np.ndarray], dict[str, Any], str]] = {
    "unknown category": ("OneHotEncoder", [words("a", "z")], {"cats_strings": ["a"], "zeros": 0}, "out of range"),
    "column that is not there": ("ArrayFeatureExtractor", [floats(2, 5), np.array([7])], {}, "out of range"),
    "labels of other columns": ("ZipMap", [floats(1, 3)], {"classlabels_int64s": [4, 5]}, "2 labels for (1, 3)"),
    "scales of other columns": (
        "Scaler",
        [floats(2, 3)],
        {"offset": [1.0, 2.0], "scale": [2.0]},
        "2 numbers in 'offset'",
    ),
    "strings among numbers": (
        "LabelEncoder",
        [words("a")],
        {"keys_int64s": [1], "values_int64s": [2]},
        "strings are looked up among numbers",
    ),
    "a norm that is none": ("Normalizer", [floats(2, 2)], {"norm": "L3"}, "there is no norm 'L3'"),
    "a kernel that is none": (
        "SVMRegressor",
        [ROWS],
        {"coefficients": [1.0], "support_vectors": [1.0, 2.0], "n_supports": 1, "kernel_type": "CUBE"},
        "there is no kernel 'CUBE'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_told_in_one_line(case: str) -> None:
    kind, arrays, attributes, expected = WRONG[case]
    model = node_model(kind, arrays, domain=ML, **attributes)
    with pytest.raises(GlowError) as caught:
        InferenceSession(model, cache=False).run(None, {f"x{n}": array for n, array in enumerate(arrays)})
    assert isinstance(caught.value, ModelError | ExecutionError)
    assert expected in str(caught.value)
    assert "node" in str(caught.value)
    with pytest.raises(Exception, match=r"."):
        by_onnxruntime(model, {f"x{n}": array for n, array in enumerate(arrays)})

"""Models whose results are as large as their data says, against onnxruntime, on all backends and with bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import glow_mlir
from glow_mlir.errors import UnsupportedError
from glow_mlir.support.symbols import Dimension

BACKENDS = ("cpu", "interpreter")

Declared = tuple[str, int, Sequence[int | str]]
"""Name, element type and sizes of an input."""


def model(nodes: Sequence[onnx.NodeProto], inputs: Sequence[Declared], outputs: Mapping[str, int]) -> bytes:
    """A model of those nodes; constants of theirs are `Constant` nodes."""
    given = [helper.make_tensor_value_info(*declared) for declared in inputs]
    results = [helper.make_tensor_value_info(name, element, None) for name, element in outputs.items()]
    graph = helper.make_graph(nodes, "selections", given, results)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def number(name: str, value: float | Sequence[int]) -> onnx.NodeProto:
    """A constant: f32 where it is one number, a list of i64 else."""
    attribute: dict[str, Any] = {"value_float": value} if isinstance(value, float) else {"value_ints": value}
    return helper.make_node("Constant", [], [name], **attribute)


def masks() -> bytes:
    """`x[x > 0] * 2 + x[x > 0]`, where, how many and their largest, and `y[keep]`, as PyTorch exports them."""
    nodes = [
        number("zero", 0.0),
        number("two", 2.0),
        number("last", [-1]),
        helper.make_node("Greater", ["x", "zero"], ["mask"]),
        helper.make_node("NonZero", ["mask"], ["columns"]),
        helper.make_node("Transpose", ["columns"], ["places"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "places"], ["chosen"]),
        helper.make_node("Greater", ["x", "zero"], ["again"]),
        helper.make_node("NonZero", ["again"], ["columns_again"]),
        helper.make_node("Transpose", ["columns_again"], ["places_again"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "places_again"], ["chosen_again"]),
        helper.make_node("Mul", ["chosen", "two"], ["doubled"]),
        helper.make_node("Add", ["doubled", "chosen_again"], ["tripled"]),
        helper.make_node("ScatterND", ["x", "places", "tripled"], ["written"]),
        helper.make_node("Shape", ["places"], ["shape"]),
        helper.make_node("Size", ["chosen"], ["size"]),
        helper.make_node("ReduceSum", ["tripled"], ["sum"], keepdims=0),
        helper.make_node("Unsqueeze", ["tripled", "last"], ["column"]),
        helper.make_node("Concat", ["column", "column"], ["pairs"], axis=1),
        number("first", [0]),
        helper.make_node("Unsqueeze", ["two", "first"], ["two_as_row"]),
        helper.make_node("Concat", ["tripled", "chosen", "two_as_row"], ["joined"], axis=0),
        helper.make_node("Compress", ["x", "keep"], ["kept"], axis=1),
        helper.make_node("MatMul", ["x", "weights"], ["product"]),
        helper.make_node("Compress", ["product", "keep_rows"], ["rows"], axis=0),
        helper.make_node("MatMul", ["rows", "weights_back"], ["back"]),
        helper.make_node("Softmax", ["back"], ["probabilities"], axis=1),
        helper.make_node("Cast", ["probabilities"], ["wide"], to=TensorProto.DOUBLE),
    ]
    inputs: list[Declared] = [
        ("x", TensorProto.FLOAT, ["n", 5]),
        ("keep", TensorProto.BOOL, [5]),
        ("keep_rows", TensorProto.BOOL, ["n"]),
        ("weights", TensorProto.FLOAT, [5, 3]),
        ("weights_back", TensorProto.FLOAT, [3, 5]),
    ]
    whole = ("columns", "shape", "size")
    parts = ("tripled", "written", "sum", "pairs", "joined", "kept", "rows", "probabilities")
    outputs = dict.fromkeys(whole, TensorProto.INT64) | dict.fromkeys(parts, TensorProto.FLOAT)
    return model(nodes, inputs, outputs | {"wide": TensorProto.DOUBLE})


def detection() -> bytes:
    """Boxes, scores and classes of what NonMaxSuppression takes, as exporters of detectors write it."""
    nodes = [
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["selected"]),
        number("box_column", [2]),
        number("class_column", [1]),
        number("image_and_box", [0, 2]),
        number("row", [1]),
        helper.make_node("Gather", ["selected", "box_column"], ["box_numbers"], axis=1),
        helper.make_node("Squeeze", ["box_numbers", "row"], ["box_list"]),
        helper.make_node("Gather", ["selected", "image_and_box"], ["places"], axis=1),
        helper.make_node("GatherND", ["boxes", "places"], ["found_boxes"]),
        helper.make_node("GatherND", ["scores", "selected"], ["found_scores"]),
        helper.make_node("Unsqueeze", ["found_scores", "row"], ["score_column"]),
        helper.make_node("Gather", ["selected", "class_column"], ["classes"], axis=1),
        helper.make_node("Cast", ["classes"], ["class_numbers"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["found_boxes", "score_column", "class_numbers"], ["rows"], axis=1),
        helper.make_node("Unique", ["box_list"], ["boxes_once", "", "", "times"]),
    ]
    inputs: list[Declared] = [
        ("boxes", TensorProto.FLOAT, [2, "count", 4]),
        ("scores", TensorProto.FLOAT, [2, 3, "count"]),
        ("most", TensorProto.INT64, [1]),
        ("overlap", TensorProto.FLOAT, [1]),
        ("least", TensorProto.FLOAT, [1]),
    ]
    integers = ("selected", "box_list", "boxes_once", "times")
    return model(nodes, inputs, dict.fromkeys(integers, TensorProto.INT64) | {"rows": TensorProto.FLOAT})


SELECTED = {
    "once": [helper.make_node("Unique", ["x"], ["once"])],
    "kept": [helper.make_node("Compress", ["x", "keep"], ["kept"], axis=0)],
    "places": [helper.make_node("NonZero", ["x"], ["columns"]), helper.make_node("Squeeze", ["columns"], ["places"])],
    "gathered": [helper.make_node("Gather", ["x", "places"], ["gathered"])],
    "numbers": [helper.make_node("Cast", ["places"], ["numbers"], to=TensorProto.FLOAT)],
}
"""Value of a size that data decides → the nodes that compute it of `x` and `keep`."""


def reductions() -> bytes:
    """Each reduction of all that is selected of inputs whose sizes are numbers."""
    nodes = [node for computed in SELECTED.values() for node in computed]
    outputs: dict[str, int] = {}
    for source in SELECTED:
        for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ArgMax", "ArgMin"):
            axis: dict[str, Any] = {"axis": 0} if kind.startswith("Arg") else {}
            if source != "places" or kind in ("ReduceSum", "ReduceMax"):
                nodes.append(helper.make_node(kind, [source], [f"{source}_{kind}"], keepdims=0, **axis))
                is_integer = source == "places" or bool(axis)
                outputs[f"{source}_{kind}"] = TensorProto.INT64 if is_integer else TensorProto.FLOAT
    return model(nodes, [("x", TensorProto.FLOAT, [6]), ("keep", TensorProto.BOOL, [6])], outputs)


MODELS: dict[str, tuple[Callable[[], bytes], Mapping[str, Dimension]]] = {
    "masks": (masks, {"n": (0, 6)}),
    "detection": (detection, {"count": (1, 9)}),
    "reductions": (reductions, {}),
}
"""Name → the model, and bounds of its free dimension."""


@cache
def peer(name: str) -> onnxruntime.InferenceSession:
    """onnxruntime with a model."""
    return onnxruntime.InferenceSession(MODELS[name][0](), providers=["CPUExecutionProvider"])


@cache
def ours(name: str, backend: str) -> glow_mlir.InferenceSession:
    """A session for all sizes."""
    made, bounds = MODELS[name]
    dimensions: dict[str, Dimension] = dict(bounds)
    return glow_mlir.InferenceSession(made(), backend=backend, dimensions=dimensions, cache=False)


def assert_as_onnxruntime(name: str, inputs: Mapping[str, np.ndarray]) -> None:
    """Compare all results, of all backends."""
    wanted = cast("list[np.ndarray]", peer(name).run(None, dict(inputs)))
    for backend in BACKENDS:
        for result, expected in zip(ours(name, backend).run(None, dict(inputs)), wanted, strict=True):
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=examples(15))
@given(rows=st.integers(1, 6), share=st.sampled_from([0.0, 0.4, 1.0]), seed=st.integers(0, 99))
def test_masks_select_what_onnxruntime_selects(rows: int, share: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    x = np.abs(generator.normal(size=(rows, 5))) * np.where(generator.random((rows, 5)) < share, 1, -1)
    keep, keep_rows = generator.random(5) < share, generator.random(rows) < share
    weights = generator.normal(size=(5, 3))
    floats = {"x": x, "weights": weights, "weights_back": weights.T}
    arrays = {key: value.astype(np.float32) for key, value in floats.items()}
    assert_as_onnxruntime("masks", {**arrays, "keep": keep, "keep_rows": keep_rows})


@settings(max_examples=examples(15))
@given(count=st.integers(1, 9), most=st.integers(0, 9), least=st.sampled_from([0.0, 0.5, 1.0]), seed=st.integers(0, 99))
def test_detections_are_those_of_onnxruntime(count: int, most: int, least: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    inputs = {
        "boxes": generator.uniform(0, 4, (2, count, 4)).astype(np.float32),
        "scores": generator.random((2, 3, count)).astype(np.float32),
        "most": np.array([most]),
        "overlap": np.array([0.3], np.float32),
        "least": np.array([least], np.float32),
    }
    assert_as_onnxruntime("detection", inputs)


def test_what_is_selected_of_sizes_that_are_numbers_is_reduced() -> None:
    for x in ([1, 0, -2, 0, 0, 1], [4, 3, 2, 1, 5, 6]):
        given = np.array(x, np.float32)
        assert_as_onnxruntime("reductions", {"x": given, "keep": given < 2})


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_position_of_an_extreme_of_nothing_is_zero(backend: str) -> None:
    found = ours("reductions", backend).run(None, {"x": np.zeros(6, np.float32), "keep": np.zeros(6, np.bool_)})
    names = [output.name for output in ours("reductions", backend).get_outputs()]
    places = [int(value) for name, value in zip(names, found, strict=True) if "Arg" in name]
    assert places == [0] * 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_sizes_that_data_decides_have_names_in_the_signature(backend: str) -> None:
    outputs = {output.name: output.shape for output in ours("detection", backend).get_outputs()}
    assert outputs["selected"] == ["selected.count", 3]
    assert outputs["rows"] == ["selected.count", 6]


def test_a_refusal_of_a_size_that_data_decides_asks_for_no_bounds() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["p"]),
        helper.make_node("Transpose", ["p"], ["rows"]),
        helper.make_node("MatMul", ["rows", "p"], ["products"]),
        helper.make_node("Cast", ["products"], ["square"], to=TensorProto.FLOAT),
        helper.make_node("Det", ["square"], ["y"]),
    ]
    source = model(nodes, [("x", TensorProto.FLOAT, [2, 2])], {"y": TensorProto.FLOAT})
    with pytest.raises(UnsupportedError, match="hint: data decides the size"):
        glow_mlir.InferenceSession(source, cache=False)

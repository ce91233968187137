"""Comparison of layers, and the copies of models that make every layer an output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models import model_named
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.frontends.onnx.intermediate_outputs import exposed_model
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.rewriting.saved_results import with_saved_results
from glow_mlir.tools.reports.layer_check import CheckReport, Comparison, Layer, Tolerance, compare


def layer(actual: object, reference: object, tolerance: Tolerance | None = None, dtype: str = "float32") -> Layer:
    found, wanted = np.array(actual, dtype), np.array(reference, dtype)
    return compare("name", "kind", "output", found, wanted, tolerance or Tolerance())


@pytest.mark.parametrize(
    ("actual", "reference", "is_wrong"),
    [
        ([1.0, 2.0], [1.0, 2.0], False),
        ([1.0, 2.0], [1.0, 2.001], False),
        ([1.0, 2.0], [1.0, 2.01], True),
        ([np.nan, np.inf, -np.inf], [np.nan, np.inf, -np.inf], False),
        ([0.0], [np.nan], True),
        ([np.nan], [0.0], True),
        ([np.inf], [-np.inf], True),
        ([1.0], [np.inf], True),
        ([np.inf], [1.0], True),
        # What is small beside the largest value of its layer may be the difference of large values.
        ([0.05, 100.0], [0.0, 100.0], False),
        ([0.05, 1.0], [0.0, 1.0], True),
        ([2e-5], [1e-5], True),
        ([1e-7], [0.0], False),
        ([], [], False),
    ],
)
def test_values_are_compared_as_floats(actual: list[float], reference: list[float], is_wrong: bool) -> None:
    assert layer(actual, reference).is_wrong == is_wrong


def test_integers_are_equal_or_wrong() -> None:
    assert not layer([1, 2], [1, 2], dtype="int64").is_wrong
    assert layer([1, 2], [1, 3], dtype="int64").is_wrong
    assert not layer([1, 2], [1, 3], Tolerance(atol=1), dtype="int64").is_wrong
    assert layer([2**60], [2**60 + 1], dtype="int64").is_wrong


def test_errors_are_the_largest_ones() -> None:
    found = layer([1.0, 2.5, 4.0], [1.0, 2.0, 5.0])
    assert (found.error, found.relative) == (1.0, 0.2)
    assert layer([np.nan], [1.0]).error == np.inf


def test_other_type_or_shape_is_wrong() -> None:
    for other in (np.zeros(2, np.float64), np.zeros(3, np.float32)):
        assert compare("name", "kind", "output", other, np.zeros(2, np.float32), Tolerance()).is_wrong


def test_report_tells_a_wrong_layer_from_a_wrong_fusion() -> None:
    right, wrong = layer([1.0], [1.0]), layer([1.0], [2.0])
    assert CheckReport("onnxruntime", [right], [right]).is_right
    assert "first wrong layer: 'name'" in CheckReport("onnxruntime", [right, wrong], [wrong]).verdict()
    fused = CheckReport("onnxruntime", [right], [wrong])
    assert not fused.is_right
    assert "every layer alone is right" in fused.verdict()


def test_every_node_is_exposed_in_topological_order() -> None:
    model = model_named("squeezenet")
    exposed = exposed_model(model)
    results = [node.output[0] for node in model.graph.node]
    assert list(exposed.layers) == results
    assert exposed.outputs[: len(model.graph.output)] == tuple(output.name for output in model.graph.output)
    assert set(exposed.outputs) == set(results)
    assert len(model.graph.output) == 1, "the model itself stays as it is"


def test_unused_second_results_and_constants_are_no_layers() -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p", "indices"], kernel_shape=[2, 2]),
        helper.make_node("Relu", ["p"], ["y"]),
        helper.make_node("Constant", [], ["c"], value_float=1.0),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 3, 3])]
    model = helper.make_model(helper.make_graph(nodes, "graph", inputs, outputs))
    assert exposed_model(model).layers == {"p": ("p", "MaxPool"), "y": ("y", "Relu")}


def external_model(folder: Path) -> Path:
    weight = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        [weight],
    )
    path = folder / "external.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path, save_as_external_data=True, location="external.bin", size_threshold=0)
    return path


def test_weights_in_another_file_come_along(tmp_path: Path) -> None:
    module = import_model(exposed_model(external_model(tmp_path)).model)
    np.testing.assert_array_equal(run_function(module, {"x": np.zeros(3, np.float32)})["y"], [1, 2, 3])


def test_missing_weights_are_named_with_the_file(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    (tmp_path / "external.bin").unlink()
    with pytest.raises(ModelError, match=r"external\.onnx: external weights cannot be read"):
        exposed_model(path)


def test_module_saves_the_result_of_every_operator() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="first"),
        helper.make_node("Neg", ["r"], ["n"], name="second"),
        helper.make_node("Abs", ["n"], ["y"], name="third"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph(nodes, "graph", values[:1], values[1:])
    module = import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    before = str(module)
    copy, layers = with_saved_results(module)
    assert str(module) == before
    copy.verify()
    [found] = layers.values()
    assert found == {"first": ("first", "relu"), "second": ("second", "neg"), "y": ("third", "abs")}
    results = run_function(copy, {"x": np.array([-1, 0, 2], np.float32)})
    np.testing.assert_array_equal(results["second"], np.array([-0.0, -0.0, -2.0], np.float32))
    assert list(results) == ["y", "first", "second"]


STATE = """
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @sum : tensor<2xf32> {state}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @main(@x, @sum, @y) {
  %x = glow_high.get @x : tensor<2xf32>
  %old = glow_high.get @sum {mutable} : tensor<2xf32>
  %new = glow_high.add %old, %x : tensor<2xf32>
  glow_high.save %new, @sum
  %y = glow_high.neg %new : tensor<2xf32>
  glow_high.save %y, @y
}
"""


def test_what_goes_to_state_is_saved_as_an_output_too() -> None:
    copy, layers = with_saved_results(parse_module(STATE, new_context()))
    copy.verify()
    assert layers == {"main": {"new": ("new", "add"), "y": ("y", "neg")}}


ARGUMENTS = """
glow_high.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %result = glow_high.relu %x : tensor<2xf32>
  %x_ = glow_high.neg %result : tensor<2xf32>
  %0 = glow_high.tanh %x_ : tensor<2xf32>
  glow_high.return %0, %x_
}
glow_high.func @other(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = glow_high.exp %x : tensor<2xf32>
  %1 = glow_high.abs %0 : tensor<2xf32>
  glow_high.return %1
}
"""


def test_functions_with_arguments_are_compared_by_the_names_that_callers_use() -> None:
    inputs = {"x": np.array([-1, 2], np.float32)}
    module = parse_module(ARGUMENTS, new_context())
    session = InferenceSession(module, backend="interpreter")
    outputs: dict[str, np.ndarray] = {}
    outputs |= zip(("result", "result1"), session.run(None, inputs), strict=True)
    report = Comparison(module, {"backend": "interpreter"}, inputs, "interpreter", Tolerance()).run(outputs)
    assert report.is_right
    assert [(found.name, found.kind) for found in report.layers] == [
        ("result", "relu"),
        ("x_", "neg"),
        ("tanh_2", "tanh"),
    ]
    assert [found.name for found in report.outputs] == ["result", "result1"]

"""What the standard forbids is refused, also where a compiler could make something of it; what it allows is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser, shape_inference
from onnx_models import declared, model_of, node, refusal, value

from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx import checking
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function


def with_more(node: onnx.NodeProto, **attributes: Any) -> onnx.NodeProto:
    """The node with further attributes, also those that it has."""
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    return node


RELU = node("Relu", name="act")
FORBIDDEN: dict[str, tuple[onnx.ModelProto, str]] = {
    "attribute twice": (
        model_of([with_more(node("Elu", name="act", alpha=1.0), alpha=2.0)]),
        "node 'act': Elu: Attribute 'alpha' appeared multiple times (hint: ",
    ),
    "attribute that the operator does not have": (
        model_of([node("Relu", name="act", alpha=1.0)]),
        "node 'act': Relu: Unrecognized attribute: alpha for operator Relu (hint: ",
    ),
    "filter that kernel_shape contradicts": (
        model_of(
            [node("Conv", "x w", name="conv", kernel_shape=[2])],
            [value("x", shape=(1, 1, 8)), value("w", shape=(1, 1, 3))],
        ),
        "node 'conv': Conv: kernel_shape is [2], but the weights have the shape (1, 1, 3) (hint: ",
    ),
    "output of another element type": (
        declared([RELU], value("y", TensorProto.INT64)),
        "output 'y' is declared as int64, but is float (hint: ",
    ),
    "value of another element type": (
        declared([node("Relu", "x", "a"), node("Relu", "a", "y")], value("y"), value("a", TensorProto.INT64)),
        "value 'a' is declared as int64, but is float (hint: ",
    ),
    "input that is computed as well": (
        model_of([node("Split", "x", "y x", "cut", num_outputs=2)]),
        "node 'cut': output 'x' has the name of another value, of an input or initializer",
    ),
    "no outputs": (model_of([RELU], outputs=[]), "the graph has no outputs (hint: "),
    "operator of a newer opset": (
        model_of([node("Gelu", name="act")], opset=13),
        "node 'act': Gelu: it is of opset 20, and the model imports opset 13 (hint: export the model for an opset",
    ),
    "operator that has been withdrawn": (
        model_of([node("Scatter", "x i x", name="put")], [value("x"), value("i", TensorProto.INT64)], opset=13),
        "node 'put': Scatter: Op registered for Scatter is deprecated in domain_version of 13 (hint: ",
    ),
    "more results than there are": (
        model_of([node("Relu", "x", "y z", "act")]),
        "node 'act': Relu: Node(act) with schema(::Relu:14) has output size 2 not in range [min=1, max=1] (hint: ",
    ),
    "no IR version": (
        model_of([RELU], ir_version=0),
        "the model is not valid: The model does not have an ir_version set properly (hint: ",
    ),
}


@pytest.mark.parametrize("case", FORBIDDEN)
def test_forbidden_model(case: str) -> None:
    model, expected = FORBIDDEN[case]
    assert expected in refusal(model, ModelError)


def test_what_a_model_says_too_much_is_no_fault() -> None:
    """Types of values that there are not, symbols for sizes that are known, and outputs without a type or a shape."""
    model = declared([RELU, node("Neg", "y", "z")], value("y", shape=("N",)), value("unused", shape=(7,)))
    model.graph.output.append(value("z", shape=None))
    results = run_function(import_model(model), {"x": np.array([1, -2], np.float32)})
    np.testing.assert_array_equal([results["y"], results["z"]], [[1, 0], [-1, 0]])


def test_large_weights_are_not_looked_at() -> None:
    """In the graph, in nodes and in branches alike: the checker gets a copy without them."""
    large, flag = numpy_helper.from_array(np.zeros((200, 200), np.float32)), numpy_helper.from_array(np.array(True))
    flag.name = "flag"
    nodes = [node("Add", "x w", "a"), node("Constant", "", "c", value=large), node("If", "flag", "b")]
    branch = helper.make_graph([node("Add", "a v", "d")], "branch", [], [value("d", shape=None)])
    branch.initializer.append(numpy_helper.from_array(np.ones((200, 200), np.float32), "v"))
    nodes[-1].attribute.extend(helper.make_attribute(f"{name}_branch", branch) for name in ("then", "else"))
    weights = [flag, numpy_helper.from_array(np.ones((200, 200), np.float32), "w")]
    model = model_of([*nodes, node("Sub", "b c", "y")], [value("x", shape=(1,))], initializers=weights)
    for source in (model, model.SerializeToString()):
        assert run_function(import_model(source), {"x": np.ones(1, np.float32)})["y"].sum() == 3 * 200 * 200


def test_an_input_that_has_a_default_says_its_shape() -> None:
    text = """<ir_version: 3, opset_import: ["": 7]>
        add (float[3] x, float[3] w) => (float[3] y) <float[3] w = {1, 2, 3}> { y = Add (x, w) }"""
    model = parser.parse_model(text)
    model.graph.input[1].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match="Field 'shape' of 'type' is required but missing"):
        import_model(model)


@pytest.mark.parametrize("failures", [1, 2])
def test_what_inference_says_without_sizes_is_asked_again(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    """With the sizes that the model declares: where it knows none, onnx takes one axis for another."""
    asked: list[onnx.ModelProto] = []

    def infer(content: bytes, *_: bool) -> None:
        asked.append(onnx.ModelProto.FromString(content))
        if len(asked) <= failures:
            raise shape_inference.InferenceError("[ShapeInferenceError] sizes differ")

    monkeypatch.setattr(checking, "infer_shapes", infer)
    model = model_of([node("Relu", "x", "r"), node("Neg", "r", "y")], [value("x", shape=(2, 3))], ["y"])
    model.graph.value_info.append(value("r", shape=(2, 3)))
    if failures == 2:
        assert "sizes differ" in refusal(model, ModelError)
    else:
        import_model(model)
    sizes = [item.graph.value_info[0].type.tensor_type.HasField("shape") for item in asked]
    assert sizes == [False, True]

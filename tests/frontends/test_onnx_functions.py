"""Functions that a model brings with it: expanded, up to a bound."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.frontends.onnx.models import inlining
from glow_mlir.frontends.onnx.models.inlining import expanded_nodes
from glow_mlir.interpreter.machine import run_function

OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]


def function(name: str, *calls: str) -> onnx.FunctionProto:
    """A function that applies others, or operators, one after the other."""
    nodes = [
        helper.make_node(kind, [f"v{place}"], [f"v{place + 1}"], domain="" if kind[0].isupper() else "local")
        for place, kind in enumerate(calls)
    ]
    return helper.make_function("local", name, ["v0"], [f"v{len(calls)}"], nodes, OPSETS)


def model(*functions: onnx.FunctionProto) -> onnx.ModelProto:
    """A model that applies the last function to `x`."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    node = helper.make_node(functions[-1].name, ["x"], ["y"], domain="local")
    graph = helper.make_graph([node], "graph", [x], [y])
    return helper.make_model(graph, functions=functions, opset_imports=OPSETS, ir_version=9)


def doubling(levels: int) -> onnx.ModelProto:
    """Functions of which each applies the one before it twice, the first a negation."""
    return model(function("f0", "Neg"), *(function(f"f{n}", f"f{n - 1}", f"f{n - 1}") for n in range(1, levels + 1)))


def test_functions_of_other_opsets_are_inlined_where_operators_are_the_same() -> None:
    """Add is of opset 14, and Softmax is another one since 13."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])

    def calling(kind: str, inputs: list[str], opset: int) -> onnx.ModelProto:
        opsets = [helper.make_opsetid("", opset)]
        body = helper.make_function("own", "F", ["a"], ["b"], [helper.make_node(kind, inputs, ["b"])], opsets)
        call = helper.make_node("F", ["x"], ["y"], "call", domain="own")
        graph = helper.make_graph([call], "graph", [x], [onnx.ValueInfoProto(name="y")])
        imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
        return helper.make_model(graph, functions=[body], opset_imports=imports)

    assert [node.op_type for node in inlining.inlined(calling("Add", ["a", "a"], 14)).graph.node] == ["Add"]
    reason = "function 'F' imports opset 12 of 'ai.onnx', and the model opset 18, in which Softmax differs"
    with pytest.raises(UnsupportedError, match=f"^node 'call': {reason}"):
        import_model(calling("Softmax", ["a"], 12))


def test_nodes_are_counted_as_they_are_expanded() -> None:
    assert expanded_nodes(doubling(0)) == 1
    assert expanded_nodes(doubling(5)) == 32
    assert expanded_nodes(model(function("g", "Neg", "Abs"), function("f", "g", "Exp", "g"))) == 5


def test_calls_of_calls_are_expanded() -> None:
    x = np.array([1, -2], np.float32)
    for levels in (0, 1, 4):
        (result,) = run_function(import_model(doubling(levels)), {"x": x}).values()
        np.testing.assert_array_equal(result, -x if levels == 0 else x)


@pytest.mark.parametrize("levels", [18, 200])
def test_an_expansion_without_end_is_refused(levels: int) -> None:
    with pytest.raises(ModelError, match=f"functions expand to {2**levels} nodes, more than {inlining.MAX_EXPANDED}"):
        import_model(doubling(levels))


def test_functions_up_to_the_bound_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlining, "MAX_EXPANDED", 16)
    import_model(doubling(4))
    with pytest.raises(ModelError, match="32 nodes, more than 16"):
        import_model(doubling(5))


def test_a_function_that_calls_itself_is_refused() -> None:
    with pytest.raises(ModelError, match=r"function '[fg]' of the model calls itself"):
        import_model(model(function("g", "Neg", "f"), function("f", "g")))


def test_attributes_of_functions_have_defaults() -> None:
    """Of a function that is called by another as well, and where a constant is an attribute."""
    text = """<ir_version: 9, opset_import: ["": 18, "local": 1]>
        calls (float[2] x) => (y) {
            a = local.scaled (x)
            b = local.scaled <by = 3.0> (a)
            y = local.outer <times = 3.0> (b)
        }
        <domain: "local", opset_import: ["": 18]>
        scaled <by: float = 0.5> (x) => (y) { c = Constant <value_float: float = @by> ()  y = Mul (x, c) }
        <domain: "local", opset_import: ["": 18, "local": 1]>
        outer <slope: float = 0.25, times> (x) => (y) {
            a = LeakyRelu <alpha: float = @slope> (x)
            b = local.scaled <by: float = @times> (a)
            y = local.scaled (b)
        }"""
    (found,) = run_function(import_model(parser.parse_model(text)), {"x": np.array([8, -8], np.float32)}).values()
    np.testing.assert_array_equal(found, [18, -4.5])


def test_what_a_function_passes_on_without_having_it_is_the_default() -> None:
    text = """<ir_version: 9, opset_import: ["": 18, "local": 1]>
        calls (float[2] x) => (y) { a = local.outer (x)  y = local.outer <slope = 0.25> (a) }
        <domain: "local", opset_import: ["": 18, "local": 1]>
        outer <slope> (x) => (y) { y = local.inner <alpha: float = @slope> (x) }
        <domain: "local", opset_import: ["": 18]>
        inner <alpha: float = 0.5> (x) => (y) { y = LeakyRelu <alpha: float = @alpha> (x) }"""
    (found,) = run_function(import_model(parser.parse_model(text)), {"x": np.array([8, -8], np.float32)}).values()
    np.testing.assert_array_equal(found, [8, -1])
